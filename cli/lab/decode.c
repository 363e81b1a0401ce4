/* Decoding JPEG to RGB.
 *
 * Threads: one a processor; each takes the next picture by an atomic counter. What they read is theirs to share, for
 * nobody writes it. */
#include "cli/lab/decode.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "fs/image/image.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS_MOST = 256 };

struct decoding {
    const struct str *picture;
    uint32_t pictures;
    uint64_t end;
    _Atomic uint64_t next, done;
};

bool decode_is_picture(const struct str *bytes)
{
    return image_is_jpeg(bytes->data, bytes->length);
}

static bool decode_picture(const struct str *bytes)
{
    const struct image_wish wish = {.channels = 3, .lenient = true};
    struct image_info info;

    if (image_probe(bytes->data, bytes->length, NULL, &info, NULL) != IMAGE_FINE)
        return false;
    struct image_pixels pixels = image_decoded(&info, &wish);
    CLEANUP_FREE uint8_t *memory = pixels.data = malloc(image_pixels_size(&pixels));
    return memory && image_decode(bytes->data, bytes->length, &wish, &pixels, NULL) == IMAGE_FINE;
}

static void *decode_body(void *user)
{
    struct decoding *d = user;

    while (clock_now() < d->end)
        if (decode_picture(&d->picture[atomic_fetch_add(&d->next, 1) % d->pictures]))
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
