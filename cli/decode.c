/* Decoding JPEG to RGB.
 *
 * Threads: one a processor; each takes the next picture by an atomic counter. What they read is theirs to share, for nobody
 * writes it. */
#include "cli/decode.h"

#include "cli/escape.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <pthread.h>
#include <sched.h>
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
static bool decode(const struct str *bytes, unsigned char *row)
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

static void *work(void *user)
{
    struct decoding *d = user;
    CLEANUP_FREE unsigned char *row = malloc(ROW_MOST);

    while (row && clock_now() < d->end)
        if (decode(&d->picture[atomic_fetch_add(&d->next, 1) % d->pictures], row))
            atomic_fetch_add(&d->done, 1);
    return NULL;
}

static int processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double decode_rate(const struct str *picture, uint32_t pictures, unsigned seconds)
{
    uint64_t began = clock_now();
    struct decoding d = {.picture = picture, .pictures = pictures, .end = began + seconds * 1000000000ull};
    pthread_t thread[THREADS_MOST];
    int wanted = processors(), started = 0;

    if (pictures == 0)
        return 0;
    while (started < wanted && started < THREADS_MOST && pthread_create(&thread[started], NULL, work, &d) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return (double)atomic_load(&d.done) / ((double)(clock_now() - began) / 1e9);
}
