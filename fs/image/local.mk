noinst_LIBRARIES += fs/image/libimage.a

fs_image_libimage_a_SOURCES = \
	fs/image/allowance.c \
	fs/image/allowance.h \
	fs/image/codec-inside.h \
	fs/image/codec.c \
	fs/image/confine.c \
	fs/image/confine.h \
	fs/image/crew-inside.h \
	fs/image/crew-work.c \
	fs/image/crew.c \
	fs/image/crew.h \
	fs/image/frame.c \
	fs/image/frame.h \
	fs/image/image-decode.c \
	fs/image/image-encode.c \
	fs/image/image-probe.c \
	fs/image/image-resize.c \
	fs/image/image-size.c \
	fs/image/image-shrink.c \
	fs/image/image.h
