/* Parses headers: properties of an image, and whether it can be decoded here. */
#include "fs/image/codec-inside.h"

#include <string.h>

enum { EXIF_TAG_ORIENTATION = 0x0112, EXIF_SHORT = 3, EXIF_ENTRY = 12 };

bool image_is_jpeg(const void *bytes, size_t n)
{
    return n > 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

/* A number of 2 or 4 bytes in the byte order of the EXIF data; 0 beyond their end. */
static uint32_t exif_number(const uint8_t *tiff, size_t length, size_t at, unsigned size)
{
    uint32_t value = 0;
    if (at > length || length - at < size)
        return 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint32_t)tiff[at + i] << 8 * (tiff[0] == 'I' ? i : size - 1 - i);
    return value;
}

static unsigned exif_orientation(const uint8_t *tiff, size_t length)
{
    size_t table = exif_number(tiff, length, 4, 4);
    unsigned entries = exif_number(tiff, length, table, 2);
    for (unsigned i = 0; i < entries; i++) {
        size_t at = table + 2 + (size_t)i * EXIF_ENTRY;
        if (exif_number(tiff, length, at, 2) == EXIF_TAG_ORIENTATION &&
            exif_number(tiff, length, at + 2, 2) == EXIF_SHORT) {
            unsigned value = exif_number(tiff, length, at + 8, 2);
            return value >= 1 && value <= 8 ? value : 1;
        }
    }
    return 1;
}

static bool marker_begins(const struct jpeg_marker_struct *marker, int kind, const char *with, size_t n)
{
    return marker->marker == kind && marker->data_length >= n && memcmp(marker->data, with, n) == 0;
}

bool codec_is_profile(const struct jpeg_marker_struct *marker)
{
    return marker_begins(marker, JPEG_APP0 + 2, "ICC_PROFILE", sizeof "ICC_PROFILE");
}

static void read_markers(const struct jpeg_marker_struct *marker, struct image_info *info)
{
    enum { TIFF = 6 }; /* after "Exif" and two zeros */
    info->orientation = 1;
    for (; marker; marker = marker->next) {
        if (codec_is_profile(marker))
            info->profile = true;
        else if (marker_begins(marker, JPEG_APP0 + 1, "Exif\0", TIFF))
            info->orientation = exif_orientation(marker->data + TIFF, marker->data_length - TIFF);
    }
}

void codec_reader_open(struct codec_reader *reader, unsigned profile, struct image_info *info)
{
    struct jpeg_decompress_struct *codec = &reader->codec;
    struct codec_guard *guard = &reader->guard;
    if (!image_is_jpeg(reader->bytes, reader->length))
        codec_give_up(guard, IMAGE_NOT_JPEG, "does not begin as a JPEG file");
    jpeg_create_decompress(codec);
    codec->progress = &guard->progress;
    codec->mem->max_memory_to_use = (long)reader->limits.memory;
    jpeg_mem_src(codec, reader->bytes, reader->length);
    jpeg_save_markers(codec, JPEG_APP0 + 1, 0xffff);
    jpeg_save_markers(codec, JPEG_APP0 + 2, profile);
    jpeg_read_header(codec, TRUE);
    read_markers(codec->marker_list, info);
    info->width = codec->image_width;
    info->height = codec->image_height;
    info->components = (unsigned)codec->num_components;
    info->progressive = codec->progressive_mode;
    info->scans = jpeg_has_multiple_scans(codec);
    info->arithmetic = codec->arith_code;
    if (codec->jpeg_color_space != JCS_GRAYSCALE && codec->jpeg_color_space != JCS_YCbCr &&
        codec->jpeg_color_space != JCS_RGB)
        codec_give_up(guard, IMAGE_COLOURS, info->components == 4 ? "is CMYK" : "is neither grey nor of three colours");
    uint64_t pixels = (uint64_t)info->width * info->height, work = reader->limits.work;
    if (pixels > reader->limits.pixels)
        codec_give_up(guard, IMAGE_LIMIT, "has more pixels than the limit");
    if (work && work / pixels < guard->scans)
        guard->scans = (unsigned)(work / pixels);
}

struct probing {
    struct codec_reader reader;
    struct image_info *info;
};

static void probe_body(void *user)
{
    struct probing *p = user;
    codec_reader_open(&p->reader, sizeof "ICC_PROFILE", p->info);
}

enum image_verdict image_probe(const void *bytes, size_t n, const struct image_limits *limits, struct image_info *info,
                               struct image_reason *reason)
{
    struct probing p = {.info = info};
    *info = (struct image_info){0};
    codec_reader_init(&p.reader, bytes, n, limits);
    enum image_verdict verdict = codec_guarded(&p.reader.guard, probe_body, &p);
    codec_reader_fini(&p.reader);
    codec_tell(&p.reader.guard, reason);
    return verdict;
}
