/* Which values are worth a try at compression: not those of compressed formats. A wrong guess costs time or room,
 * never data. */
#include "fs/store/value.h"

#include <string.h>
#include <strings.h>

static const char *const packed_extensions[] = {
    "7z",  "aac",  "apk",  "avif", "br",  "bz2", "docx", "flac", "gif",     "gz",  "h264", "heic", "heif",
    "j2k", "jar",  "jp2",  "jpeg", "jpg", "jxl", "lz4",  "lzma", "m4a",     "m4v", "mkv",  "mov",  "mp3",
    "mp4", "mpeg", "mpg",  "npz",  "odt", "ogg", "opus", "orc",  "parquet", "png", "pptx", "rar",  "tbz2",
    "tgz", "txz",  "webm", "webp", "whl", "wmv", "xlsx", "xz",   "zip",     "zst",
};

static const struct {
    uint8_t at, length;
    const char *bytes;
} magics[] = {
    {0, 3, "\xff\xd8\xff"}, /* JPEG */
    {0, 8, "\x89PNG\r\n\x1a\n"},
    {0, 4, "GIF8"},
    {8, 4, "WEBP"},
    {0, 4, "PK\3\4"},   /* zip, and formats based on it: npz, docx, jar */
    {0, 2, "\x1f\x8b"}, /* gzip */
    {0, 3, "BZh"},
    {0, 6, "\3757zXZ\0"},
    {0, 4, "\x28\xb5\x2f\xfd"}, /* zstd */
    {0, 4, "\x04\x22\x4d\x18"}, /* lz4 */
    {0, 6, "7z\xbc\xaf\x27\x1c"},
    {0, 4, "Rar!"},
    {4, 4, "ftyp"},             /* MP4, MOV, HEIC, AVIF */
    {0, 4, "\x1a\x45\xdf\xa3"}, /* Matroska, WebM */
    {0, 4, "OggS"},
    {0, 4, "fLaC"},
    {0, 3, "ID3"},
    {0, 12, "\0\0\0\x0cjP  \r\n\x87\n"}, /* JPEG 2000 */
    {0, 2, "\xff\x0a"},                  /* JPEG XL */
};

static const char *extension(const char *name)
{
    const char *dot = name ? strrchr(name, '.') : NULL;
    return dot ? dot + 1 : "";
}

static bool has_extension(const char *name, const char *const *list, size_t count)
{
    const char *e = extension(name);
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(e, list[i]) == 0)
            return true;
    return false;
}

static bool has_magic(const unsigned char *head, size_t n)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (n >= (size_t)magics[i].at + magics[i].length &&
            memcmp(head + magics[i].at, magics[i].bytes, magics[i].length) == 0)
            return true;
    return false;
}

bool value_worth_trying(const char *name, const void *head, size_t n, uint64_t file_size)
{
    static const char *const stored_zips[] = {"pt", "pth", "ckpt"}; /* zip files whose members are not compressed */
    if (file_size > EXTENT_BYTES)
        return false;
    if (has_extension(name, packed_extensions, sizeof packed_extensions / sizeof *packed_extensions))
        return false;
    if (has_extension(name, stored_zips, sizeof stored_zips / sizeof *stored_zips))
        return true;
    return !has_magic(head, n);
}
