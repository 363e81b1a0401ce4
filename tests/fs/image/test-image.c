/* fs/image: what is in a picture, its pixels, smaller ones, files of those; and whatever is broken about one. */
#include "fs/base/cleanup.h"
#include "fs/image/image.h"
#include "tests/fs/image/photo.h"
#include "tests/lib/tap.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static uint64_t most_work; /* of the images that were decoded: pixels times scans that the library has begun */

/* Called at the end of each image. A second header in the middle of one is an error, but has changed image_width. */
void jpeg_destroy_decompress(j_decompress_ptr codec)
{
    void (*of_library)(j_decompress_ptr) = (__typeof__(of_library))dlsym(RTLD_NEXT, "jpeg_destroy_decompress");
    uint64_t work = (uint64_t)codec->output_width * codec->output_height * (unsigned)codec->input_scan_number;
    if (work > most_work)
        most_work = work;
    of_library(codec);
}

static const struct image_wish colours = {.channels = 3};

/* Probe and decode; the pixels are the caller's, NULL on a bad verdict. */
static enum image_verdict open_picture(const struct str *file, const struct image_wish *wish,
                                       struct image_pixels *pixels, struct image_reason *reason)
{
    struct image_info info;
    enum image_verdict verdict = image_probe(file->data, file->length, &wish->limits, &info, reason);
    pixels->data = NULL;
    if (verdict != IMAGE_FINE)
        return verdict;
    *pixels = image_decoded(&info, wish);
    pixels->data = malloc(image_pixels_size(pixels));
    verdict = image_decode(file->data, file->length, wish, pixels, reason);
    if (verdict != IMAGE_FINE) {
        free(pixels->data);
        pixels->data = NULL;
    }
    return verdict;
}

static enum image_verdict judge(const struct str *file, const struct image_wish *wish, struct image_reason *reason)
{
    struct image_pixels pixels;
    enum image_verdict verdict = open_picture(file, wish, &pixels, reason);
    free(pixels.data);
    return verdict;
}

static void is_verdict(enum image_verdict got, enum image_verdict expected, const char *what,
                       const struct image_reason *reason)
{
    is_str(image_verdict_name(got), image_verdict_name(expected), "%s: %s%s%s", what, image_verdict_name(expected),
           reason->text[0] ? ": " : "", reason->text);
}

static void test_probe(void)
{
    CLEANUP_STR struct str file = STR_INIT;
    struct image_info info;
    photo_make(&(struct photo){.width = 321, .height = 123, .orientation = 6, .profile = "red as it should be"}, &file);
    is_int(image_probe(file.data, file.length, NULL, &info, NULL), IMAGE_FINE, "a picture is fine");
    ok(info.width == 321 && info.height == 123 && info.components == 3, "of its size and colours");
    ok(!info.progressive && !info.arithmetic && info.profile, "baseline, with a colour profile");
    is_uint(info.orientation, 6, "its orientation");
    str_clear(&file);
    photo_make(
        &(struct photo){.width = 64, .height = 64, .channels = 1, .progressive = true, .intel = true, .orientation = 8},
        &file);
    is_int(image_probe(file.data, file.length, NULL, &info, NULL), IMAGE_FINE, "a grey, progressive one is fine");
    ok(info.progressive && info.scans && info.components == 1 && !info.profile, "and so it is said to be");
    is_uint(info.orientation, 8, "its orientation, in the other order of bytes");
    str_clear(&file);
    photo_make(&(struct photo){.width = 64, .height = 64, .apart = true}, &file);
    image_probe(file.data, file.length, NULL, &info, NULL);
    ok(!info.progressive && info.scans, "a scan for each component is not progressive, but takes memory");
    str_clear(&file);
    photo_make(&(struct photo){.width = 64, .height = 64, .orientation = 9}, &file);
    image_probe(file.data, file.length, NULL, &info, NULL);
    is_uint(info.orientation, 1, "an orientation that there is not is 1");
}

static unsigned differs(const uint8_t *a, const uint8_t *b, unsigned n)
{
    unsigned most = 0;
    for (unsigned i = 0; i < n; i++)
        most = (unsigned)abs(a[i] - b[i]) > most ? (unsigned)abs(a[i] - b[i]) : most;
    return most;
}

/* Each orientation against its definition: where the file's pixel (x, y) is shown. */
static void test_orientation(void)
{
    enum { WIDTH = 48, HEIGHT = 32 };
    CLEANUP_STR struct str plain = STR_INIT;
    struct image_pixels as_stored;
    photo_make(&(struct photo){.width = WIDTH, .height = HEIGHT}, &plain);
    open_picture(&plain, &colours, &as_stored, NULL);
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        CLEANUP_STR struct str file = STR_INIT;
        struct image_pixels p;
        unsigned wrong = 0;
        photo_make(&(struct photo){.width = WIDTH, .height = HEIGHT, .orientation = orientation}, &file);
        open_picture(&file, &(struct image_wish){.channels = 3, .upright = true}, &p, NULL);
        for (unsigned y = 0; y < HEIGHT; y++) {
            for (unsigned x = 0; x < WIDTH; x++) {
                const unsigned far_x = WIDTH - 1 - x, far_y = HEIGHT - 1 - y;
                const unsigned to[9][2] = {{0},    {x, y},     {far_x, y},     {far_x, far_y}, {x, far_y},
                                           {y, x}, {far_y, x}, {far_y, far_x}, {y, far_x}};
                size_t at = (size_t)to[orientation][1] * p.width + to[orientation][0];
                wrong += memcmp(p.data + 3 * at, as_stored.data + 3 * (y * WIDTH + x), 3) != 0;
            }
        }
        is_uint(wrong, 0, "orientation %u is applied", orientation);
        free(p.data);
    }
    free(as_stored.data);
}

static void test_decode(void)
{
    CLEANUP_STR struct str file = STR_INIT, grey = STR_INIT;
    struct image_pixels p, q;
    bool equal = true;
    photo_make(&(struct photo){.width = 1000, .height = 601}, &file);
    is_int(open_picture(&file, &(struct image_wish){.channels = 3, .side = 150}, &p, NULL), IMAGE_FINE, "scaled");
    ok(p.width == 250 && p.height == 151, "to the smallest of an eighth, a quarter and a half that is large enough");
    free(p.data);
    is_int(open_picture(&file, &(struct image_wish){.channels = 3, .side = 2000}, &p, NULL), IMAGE_FINE,
           "never larger");
    ok(p.width == 1000 && p.height == 601, "than it is");
    free(p.data);
    photo_make(&(struct photo){.width = 99, .height = 77, .channels = 1}, &grey);
    is_int(open_picture(&grey, &colours, &p, NULL), IMAGE_FINE, "a grey one as three colours");
    is_int(open_picture(&grey, &(struct image_wish){.channels = 1}, &q, NULL), IMAGE_FINE, "and as one");
    ok(p.channels == 3 && q.channels == 1, "has so many channels");
    for (size_t i = 0; i < (size_t)q.width * q.height; i++)
        equal = equal && p.data[3 * i] == q.data[i] && p.data[3 * i + 1] == q.data[i] && p.data[3 * i + 2] == q.data[i];
    ok(equal, "which are equal");
    p.width--;
    is_int(image_decode(grey.data, grey.length, &colours, &p, NULL), IMAGE_CORRUPT, "not into another size's memory");
    free(p.data);
    free(q.data);
}

static void test_fit(void)
{
    uint32_t w = 500, h = 375;
    ok(image_fit(256, &w, &h) && w == 341 && h == 256, "500 × 375 fits into 341 × 256");
    ok(!image_fit(256, &w, &h) && w == 341 && h == 256, "which stays as it is");
    w = 65500, h = 2;
    ok(image_fit(1, &w, &h) && w == 32750 && h == 1, "the shape is kept");
    ok(!image_fit(0, &w, &h), "nothing fits into nothing");
}

/* What the weights must give, whatever the sizes: even areas stay even, edges stay where they are. */
static void test_resize(void)
{
    static const uint32_t sizes[][4] = {{1, 1, 1, 1},         {7, 5, 3, 2},     {65500, 1, 327, 1}, {100, 3000, 1, 30},
                                        {640, 480, 256, 256}, {33, 17, 33, 17}, {50, 40, 49, 39}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t *s = sizes[i];
        for (unsigned channels = 1; channels <= 3; channels += 2) {
            struct image_pixels from = {NULL, s[0], s[1], channels}, to = {NULL, s[2], s[3], channels};
            bool even = true;
            from.data = malloc(image_pixels_size(&from));
            to.data = malloc(image_pixels_size(&to));
            for (unsigned value = 0; value <= 255; value += 51) {
                memset(from.data, (int)value, image_pixels_size(&from));
                even = even && image_resize(&from, &to);
                for (size_t k = 0; k < image_pixels_size(&to); k++)
                    even = even && to.data[k] == value;
            }
            ok(even, "%u × %u in %u channels to %u × %u: what is even stays even", s[0], s[1], channels, s[2], s[3]);
            free(from.data);
            free(to.data);
        }
    }
    uint8_t edge[64], half[32];
    const struct image_pixels from = {edge, 64, 1, 1}, to = {half, 32, 1, 1}, larger = {edge, 65, 1, 1};
    for (int x = 0; x < 64; x++)
        edge[x] = x < 32 ? 0 : 255;
    ok(image_resize(&from, &to) && half[8] == 0 && half[15] < 50 && half[16] > 205 && half[24] == 255,
       "an edge stays where it is");
    ok(!image_resize(&from, &larger), "nothing is made larger");
}

static void test_encode(void)
{
    CLEANUP_STR struct str file = STR_INIT, out = STR_INIT, small = STR_INIT;
    struct image_encoding encoding = {.quality = 90, .orientation = 3};
    struct image_pixels p, q;
    struct image_info info;
    struct image_reason reason;
    photo_make(&(struct photo){.width = 200, .height = 100, .orientation = 3, .profile = "as bought"}, &file);
    open_picture(&file, &colours, &p, NULL);
    encoding.original = file.data;
    encoding.original_length = file.length;
    str_adds(&out, "before");
    is_int(image_encode(&p, &encoding, &out, &reason), IMAGE_FINE, "a picture is encoded");
    ok(memcmp(out.data, "before", 6) == 0, "behind what is there");
    memmove(out.data, out.data + 6, out.length -= 6);
    is_int(image_probe(out.data, out.length, NULL, &info, NULL), IMAGE_FINE, "it is fine");
    ok(info.orientation == 3 && info.profile && info.width == 200, "it has kept orientation, profile and size");
    ok(memmem(out.data, out.length, "as b", 4) && memmem(out.data, out.length, "ought", 5), "all of the profile");
    is_int(open_picture(&out, &colours, &q, NULL), IMAGE_FINE, "and is decoded");
    ok(differs(p.data, q.data, 200 * 100 * 3) < 100, "to nearly the same pixels");
    encoding.optimise = true;
    is_int(image_encode(&p, &encoding, &small, &reason), IMAGE_FINE, "with Huffman tables of its own");
    ok(small.length < out.length, "it is smaller: %zu < %zu", small.length, out.length);
    encoding.most = 500;
    size_t before = small.length;
    is_int(image_encode(&p, &encoding, &small, &reason), IMAGE_LIMIT, "not beyond a limit: %s", reason.text);
    is_uint(small.length, before, "nothing is added then");
    free(p.data);
    free(q.data);
}

/* --- broken ones --- */

static void patch(struct str *file, uint8_t marker, unsigned offset, unsigned value)
{
    size_t at[64];
    unsigned count = photo_markers(file, at, 64);
    for (unsigned i = 0; i < count; i++)
        if ((uint8_t)file->data[at[i] + 1] == marker)
            file->data[at[i] + offset] = (char)value;
}

static void test_kinds(void)
{
    static const struct kind {
        const char *what;
        struct photo photo;
        enum image_verdict verdict;
    } kinds[] = {
        {"baseline", {.width = 300, .height = 200}, IMAGE_FINE},
        {"4:4:4", {.width = 300, .height = 200, .plain_chroma = true}, IMAGE_FINE},
        {"grey", {.width = 300, .height = 200, .channels = 1}, IMAGE_FINE},
        {"progressive", {.width = 300, .height = 200, .progressive = true}, IMAGE_FINE},
        {"arithmetic", {.width = 300, .height = 200, .arithmetic = true}, IMAGE_FINE},
        {"arithmetic and progressive",
         {.width = 99, .height = 20, .arithmetic = true, .progressive = true},
         IMAGE_FINE},
        {"CMYK", {.width = 300, .height = 200, .channels = 4}, IMAGE_COLOURS},
        {"65,500 wide", {.width = 65500, .height = 3}, IMAGE_FINE},
        {"65,500 high", {.width = 1, .height = 65500}, IMAGE_FINE},
        {"one pixel", {.width = 1, .height = 1}, IMAGE_FINE},
    };
    struct image_reason reason;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        CLEANUP_STR struct str file = STR_INIT;
        photo_make(&kinds[i].photo, &file);
        is_verdict(judge(&file, &colours, &reason), kinds[i].verdict, kinds[i].what, &reason);
    }
}

static void test_lies(void)
{
    static const struct lie {
        const char *what;
        unsigned offset, value; /* in the frame header */
        enum image_verdict verdict;
    } lies[] = {
        {"12 bits", 4, 12, IMAGE_UNSUPPORTED},         {"16 bits", 4, 16, IMAGE_UNSUPPORTED},
        {"lossless", 1, 0xc3, IMAGE_UNSUPPORTED},      {"hierarchical", 1, 0xc5, IMAGE_UNSUPPORTED},
        {"no components", 9, 0, IMAGE_EMPTY},          {"a bad length", 3, 5, IMAGE_CORRUPT},
        {"higher than it is", 5, 0x20, IMAGE_CORRUPT},
    };
    struct image_reason reason;
    for (unsigned i = 0; i < sizeof lies / sizeof *lies; i++) {
        CLEANUP_STR struct str file = STR_INIT;
        photo_make(&(struct photo){.width = 300, .height = 200}, &file);
        patch(&file, 0xc0, lies[i].offset, lies[i].value);
        is_verdict(judge(&file, &colours, &reason), lies[i].verdict, lies[i].what, &reason);
    }
    CLEANUP_STR struct str flat = STR_INIT;
    photo_make(&(struct photo){.width = 300, .height = 200}, &flat);
    patch(&flat, 0xc0, 6, 0);
    is_verdict(judge(&flat, &colours, &reason), IMAGE_EMPTY, "no height", &reason);
}

static void test_limits(void)
{
    struct image_wish wish = {.channels = 3, .limits = {.pixels = 59999, .memory = 1 << 30, .scans = 100}};
    CLEANUP_STR struct str file = STR_INIT;
    struct image_reason reason;
    photo_make(&(struct photo){.width = 300, .height = 200, .progressive = true}, &file);
    is_verdict(judge(&file, &wish, &reason), IMAGE_LIMIT, "a pixel too many", &reason);
    wish.limits.pixels = 60000;
    is_verdict(judge(&file, &wish, &reason), IMAGE_FINE, "none too many", &reason);
    wish.limits.scans = 5;
    is_verdict(judge(&file, &wish, &reason), IMAGE_LIMIT, "too many scans", &reason);
    wish.limits.scans = 100;
    wish.limits.work = 5 * UINT64_C(60000);
    is_verdict(judge(&file, &wish, &reason), IMAGE_LIMIT, "too many for so many pixels", &reason);
    wish.limits.work = 10 * UINT64_C(60000);
    is_verdict(judge(&file, &wish, &reason), IMAGE_FINE, "not too many", &reason);
    wish.limits.memory = 100 << 10;
    is_verdict(judge(&file, &wish, &reason), IMAGE_LIMIT, "too little memory", &reason);
}

static void test_other_files(void)
{
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0";
    struct image_reason reason;
    struct image_info info;
    is_verdict(image_probe(png, sizeof png, NULL, &info, &reason), IMAGE_NOT_JPEG, "a PNG", &reason);
    is_verdict(image_probe("", 0, NULL, &info, &reason), IMAGE_NOT_JPEG, "nothing", &reason);
    is_verdict(image_probe("\xff\xd8\xff\xd9", 4, NULL, &info, &reason), IMAGE_TRUNCATED, "an end at once", &reason);
    is_uint(info.width, 0, "nothing is known of it");
}

/* Cut at every marker, and at 200 places between: never fine, each with a reason. */
static void test_cuts(void)
{
    for (int progressive = 0; progressive <= 1; progressive++) {
        CLEANUP_STR struct str file = STR_INIT;
        size_t at[256];
        unsigned good = 0, cuts = 0;
        photo_make(&(struct photo){.width = 300, .height = 200, .progressive = progressive}, &file);
        unsigned markers = photo_markers(&file, at, 256);
        for (unsigned i = 0; i < 200 + 3 * markers; i++) {
            size_t end = i < 200 ? file.length * i / 200 : at[(i - 200) / 3] + (i - 200) % 3;
            struct str part = {.data = memcpy(malloc(end + 1), file.data, end), .length = end < file.length ? end : 0};
            struct image_reason reason;
            enum image_verdict verdict = judge(&part, &colours, &reason);
            good += verdict == IMAGE_FINE || reason.text[0] == '\0';
            verdict = judge(&part, &(struct image_wish){.channels = 3, .lenient = true}, &reason);
            good += verdict == IMAGE_FINE || reason.text[0] == '\0';
            cuts++;
            str_fini(&part);
        }
        is_uint(good, 0, "of %u cuts of a %s picture each has a reason", cuts,
                progressive ? "progressive" : "baseline");
    }
}

/* Bytes of the header and of the data, one at a time: whatever comes out, the work for it is bounded. */
static void test_flips(void)
{
    static const struct photo photos[] = {{.width = 64, .height = 48, .orientation = 6, .profile = "red"},
                                          {.width = 64, .height = 48, .progressive = true},
                                          {.width = 64, .height = 48, .arithmetic = true}};
    struct image_wish wish = {.channels = 3, .limits = {.pixels = 1 << 22, .memory = 64 << 20, .scans = 50}};
    unsigned verdicts[IMAGE_VERDICTS] = {0};
    most_work = 0;
    for (unsigned i = 0; i < 3; i++) {
        CLEANUP_STR struct str file = STR_INIT;
        photo_make(&photos[i], &file);
        for (size_t at = 0; at < file.length; at++) {
            struct image_reason reason = {{0}};
            char was = file.data[at];
            file.data[at] = (char)(at % 3 == 0 ? 0xff : at % 3 == 1 ? 0 : was ^ 0x10);
            wish.lenient = at % 2;
            enum image_verdict verdict = judge(&file, &wish, &reason);
            file.data[at] = was;
            verdicts[verdict]++;
            if (verdict != IMAGE_FINE && reason.text[0] == '\0')
                fail("no reason");
        }
    }
    for (unsigned i = 0; i < IMAGE_VERDICTS; i++)
        diag("%u are %s", verdicts[i], image_verdict_name(i));
    ok(verdicts[IMAGE_FINE] > 0, "each has a verdict, and some are fine");
    uint64_t bound = wish.limits.pixels * (wish.limits.scans + 1); /* the scan that is too many has begun */
    diag("at most %ju pixels, as often as there are scans", (uintmax_t)most_work);
    ok(most_work >= 64 * 48 * 10 && most_work <= bound, "the work for none of them is beyond the limits");
}

int main(void)
{
    test_probe();
    test_orientation();
    test_decode();
    test_fit();
    test_resize();
    test_encode();
    test_kinds();
    test_lies();
    test_limits();
    test_other_files();
    test_cuts();
    test_flips();
    return done_testing();
}
