/* Pictures for shell tests:
 *
 *     pictures make DIR COUNT               COUNT good ones, and one of each kind that is odd or broken
 *     pictures shrink SIDE QUALITY FILE     what becomes of one, on stdout; 1 and the verdict's name: nothing */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/image/image.h"
#include "tests/fs/image/photo.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *directory;

static void write_picture(const char *name, const struct str *bytes)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/%s", directory, name);
    if (file_write_atomic(AT_FDCWD, path.data, bytes->data ? bytes->data : "", bytes->length, 0644))
        bail_out("cannot write %s", path.data);
}

static void make(const char *name, const struct photo *photo)
{
    CLEANUP_STR struct str bytes = STR_INIT;
    photo_make(photo, &bytes);
    write_picture(name, &bytes);
}

/* One byte of the frame header is another. */
static void make_lie(const char *name, unsigned offset, uint8_t value)
{
    CLEANUP_STR struct str bytes = STR_INIT;
    size_t at[64];
    photo_make(&(struct photo){.width = 300, .height = 200}, &bytes);
    unsigned count = photo_markers(&bytes, at, 64);
    for (unsigned i = 0; i < count; i++)
        if ((uint8_t)bytes.data[at[i] + 1] == 0xc0)
            bytes.data[at[i] + offset] = (char)value;
    write_picture(name, &bytes);
}

static void make_broken(void)
{
    CLEANUP_STR struct str bytes = STR_INIT, nothing = STR_INIT, png = STR_INIT;
    photo_make(&(struct photo){.width = 300, .height = 200}, &bytes);
    bytes.length = bytes.length / 2;
    write_picture("cut.jpg", &bytes);
    str_clear(&bytes);
    photo_make(&(struct photo){.width = 300, .height = 200}, &bytes);
    memset(bytes.data + bytes.length / 2, 0xff, 40);
    write_picture("damaged.jpg", &bytes);
    write_picture("nothing.jpg", &nothing);
    str_add(&png, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    write_picture("png.JPEG", &png);
    make_lie("twelve.jpg", 4, 12);
    make_lie("flat.jpg", 6, 0);
}

static void make_all(int count)
{
    char name[32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "good%03d.jpg", i);
        make(name, &(struct photo){.width = 300 + 7 * (unsigned)i, .height = 240 + 3 * (unsigned)i});
    }
    make("arithmetic.jpg", &(struct photo){.width = 300, .height = 200, .arithmetic = true});
    make("cmyk.jpg", &(struct photo){.width = 300, .height = 200, .channels = 4});
    make("grey.jpg", &(struct photo){.width = 301, .height = 200, .channels = 1});
    make("progressive.jpg", &(struct photo){.width = 302, .height = 200, .progressive = true});
    make("small.jpg", &(struct photo){.width = 80, .height = 30});
    make("turned", &(struct photo){.width = 303, .height = 200, .orientation = 6, .profile = "as it was"});
    make("wide.jpg", &(struct photo){.width = 65500, .height = 2});
    make_broken();
}

static int shrink(const char *side, const char *quality, const char *path)
{
    const struct image_shrinking wanted = {(uint32_t)atoi(side), (unsigned)atoi(quality), {0}};
    CLEANUP_STR struct str file = STR_INIT, out = STR_INIT;
    if (file_read(AT_FDCWD, path, 1 << 30, &file))
        bail_out("cannot read %s", path);
    enum image_verdict verdict = image_shrink(file.data, file.length, &wanted, &out, NULL);
    if (verdict == IMAGE_FINE)
        return fwrite(out.data, 1, out.length, stdout) != out.length;
    puts(image_verdict_name(verdict));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "shrink") == 0)
        return shrink(argv[2], argv[3], argv[4]);
    if (argc != 4 || strcmp(argv[1], "make") != 0)
        bail_out("usage: pictures make DIR COUNT | shrink SIDE QUALITY FILE");
    directory = argv[2];
    mkdir(directory, 0755);
    make_all(atoi(argv[3]));
    return 0;
}
