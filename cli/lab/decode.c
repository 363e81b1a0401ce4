/* Decoding JPEG to RGB.
 *
 * Threads: one a processor; each takes the next picture by an atomic counter. What they read is theirs to share, for
 * nobody writes it. */
#include "cli/lab/decode.h"

#include "cli/lab/escape.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 256, ROW_MOST = 1 << 18 };

struct decoding {
    const struct str *picture;
    uint32_t pictures;
    uint64_t end;
    _Atomic uint64_t next, done;
};

bool decode_is_picture(const struct str *bytes)
{
    return bytes->length > 3 && memcmp(bytes->data, "\xff\xd8\xff", 3) == 0;
}

/* `row` has ROW_MOST bytes. */
static bool decode_picture(const struct str *bytes, unsigned char *row)
{
    struct jpeg_decompress_struct codec = {0};
    struct escape escape;

    codec.err = escape_from(&escape);
    if (setjmp(escape.back)) {
        jpeg_destroy_decompress(&codec);
        return false;
    }
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, (const unsigned char *)bytes->data, bytes->length);
    jpeg_read_header(&codec, TRUE);
    jpeg_start_decompress(&codec);
    bool fits = (uint64_t)codec.output_width * (unsigned)codec.output_components <= ROW_MOST;
    while (fits && codec.output_scanline < codec.output_height)
        jpeg_read_scanlines(&codec, &row, 1);
    jpeg_destroy_decompress(&codec);
    return fits;
}

static void *decode_body(void *user)
{
    struct decoding *d = user;
    CLEANUP_FREE unsigned char *row = malloc(ROW_MOST);

    while (row && clock_now() < d->end)
        if (decode_picture(&d->picture[atomic_fetch_add(&d->next, 1) % d->pictures], row))
            atomic_fetch_add(&d->done, 1);
    return NULL;
}

double decode_rate(const struct str *picture, uint32_t pictures, unsigned seconds)
{
    uint64_t began = clock_now();
    struct decoding d = {.picture = picture, .pictures = pictures, .end = began + seconds * SECOND};
    pthread_t thread[THREADS_MOST];
    int wanted = (int)processors_count();

    if (pictures == 0)
        return 0;
    wanted = wanted < THREADS_MOST ? wanted : THREADS_MOST;
    threads_join(thread, threads_start(thread, wanted, "decode", decode_body, &d));
    return (double)atomic_load(&d.done) / ((double)(clock_now() - began) / 1e9);
}
