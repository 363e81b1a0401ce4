/* Memory for pixels, with a descriptor for sharing it with a process of a crew. It is reused for later images, because
 * allocating it takes a tenth of the time of decoding into it. */
#ifndef FS_IMAGE_FRAME_H
#define FS_IMAGE_FRAME_H

#include <stddef.h>

struct image_frame {
    char *bytes;   /* page-aligned */
    size_t size;   /* bytes of allocated memory, whole pages */
    size_t mapped; /* at least `size` */
    int fd;
};

int frame_create(size_t size, struct image_frame **frame);
/* Its contents may be lost. -ENOMEM: unchanged. */
int frame_resize(struct image_frame *frame, size_t size);
/* The memory is freed even if a process still maps it. */
void frame_destroy(struct image_frame *frame);

#endif
