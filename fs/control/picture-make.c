/* Decodes one image into a frame:
 *
 *     │ header of the array │ pixels │
 *
 * Processes of the crew parse headers and decode: libjpeg is never called in the server. They cannot access a frame;
 * the server copies their result into it. */
#include "fs/control/picture-make.h"

#include "fs/control/control-private.h"
#include "fs/control/epoch-read.h"
#include "fs/control/jobs.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_USUAL = 4 << 10, /* contains most headers */
    HEAD_LONG = 64 << 10, /* for headers with a profile or a preview; then four times as much, and so on */
    NPY_ALIGN = 64,
    ROOM_LEAST = 16 << 10,
    MEMORY_LEAST = 16 << 20, /* memory that the library may use for any image */
    COEFFICIENTS = 8,        /* maximum bytes per pixel for an image with several scans */
};

static struct crew_file file_of(const struct picture_making *m)
{
    return (struct crew_file){m->bytes, m->have, {job_gave_up, m->job}};
}

static int fetch_up_to(struct picture_making *m, uint64_t wanted)
{
    wanted = wanted < m->size ? wanted : m->size;
    if (m->bytes && wanted <= m->have)
        return 0;
    if (charge_add(&m->charge, wanted - m->have, m->why) < 0)
        return wanted <= m->control->config.mount->request_memory ? -EAGAIN : -ENOMEM;
    char *bytes = realloc(m->bytes, wanted + 1);
    if (!bytes)
        return str_no_memory(m->why);
    m->bytes = bytes;
    const struct stream_access access = {m->control->config.store, job_gave_up, m->job, NULL};
    int error = stream_read_file(&access, m->key.file, m->have, wanted - m->have, bytes + m->have);
    m->have = error ? m->have : wanted;
    return error;
}

static int say_verdict(struct picture_making *m, enum image_verdict verdict, const struct image_reason *reason)
{
    if (verdict == IMAGE_CRASHED && job_gave_up(m->job))
        return -EINTR;
    str_addf(m->why, "%s: ", image_verdict_name(verdict));
    str_adds(m->why, reason->text[0] ? reason->text : "cannot be decoded");
    return verdict == IMAGE_NO_MEMORY ? -ENOMEM : -EIO;
}

static int look_at_header(struct picture_making *m)
{
    struct image_reason reason = {""};
    enum image_verdict verdict = IMAGE_TRUNCATED;
    int error = fetch_up_to(m, HEAD_USUAL);
    while (!error) {
        const struct crew_file file = file_of(m);
        verdict = crew_probe(m->crew, &file, &m->info, &reason);
        if (verdict != IMAGE_TRUNCATED || m->have == m->size)
            break;
        error = fetch_up_to(m, m->have < HEAD_LONG ? HEAD_LONG : 4 * m->have);
    }
    return error || verdict == IMAGE_FINE ? error : say_verdict(m, verdict, &reason);
}

/* Version 1.0 of the format: magic, length, and a Python literal padded with blanks so that the array is aligned. */
static void write_head(struct picture_making *m, const struct image_pixels *shown)
{
    enum { BEFORE = 10 };
    int n = snprintf(m->npy + BEFORE, sizeof m->npy - BEFORE,
                     "{'descr': '|u1', 'fortran_order': False, 'shape': (%" PRIu32 ", %" PRIu32 ", 3), }",
                     shown->height, shown->width);
    m->npy_length = ((size_t)n + BEFORE + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(m->npy + BEFORE + n, ' ', m->npy_length - BEFORE - (size_t)n - 1);
    m->npy[m->npy_length - 1] = '\n';
    memcpy(m->npy, "\x93NUMPY\x01\0", 8);
    m->npy[8] = (char)((m->npy_length - BEFORE) & 0xff);
    m->npy[9] = (char)((m->npy_length - BEFORE) >> 8);
}

static bool is_scaled(const struct crew_decoding *d)
{
    return d->decoded.width != d->shown.width || d->decoded.height != d->shown.height;
}

static void choose_sizes(struct picture_making *m)
{
    const struct image_wish whole = {.channels = 3, .upright = true};
    struct crew_decoding *d = &m->decoding;
    uint64_t pixels = (uint64_t)m->info.width * m->info.height;
    d->wish = whole;
    d->shown = d->decoded = image_decoded(&m->info, &whole);
    if (m->key.side && image_fit(m->key.side, &d->shown.width, &d->shown.height)) {
        d->wish.side = 2 * m->key.side;
        d->decoded = image_decoded(&m->info, &d->wish);
    }
    d->wish.lenient = true;
    d->wish.limits = image_limits_usual;
    d->wish.limits.memory = (m->info.scans ? pixels * COEFFICIENTS : 0) + MEMORY_LEAST;
    write_head(m, &d->shown);
}

int making_begin(struct picture_making *m)
{
    m->size = catalog_file(m->control->config.catalog, m->key.file).size;
    m->charge = control_charge(m->control, fuse_req_ctx(m->job->req)->uid);
    int error = m->info.width ? 0 : look_at_header(m);
    if (!error)
        choose_sizes(m);
    return error;
}

size_t making_length(const struct picture_making *m)
{
    return m->npy_length + image_pixels_size(&m->decoding.shown);
}

/* Rounded up, so that the frame also fits the next image, which has a similar size. */
size_t making_room(const struct picture_making *m)
{
    enum { STEPS = 4 };
    size_t needed = making_length(m), step = ROOM_LEAST;
    while (step * STEPS * 2 < needed)
        step *= 2;
    return (needed + step - 1) / step * step;
}

size_t making_slot(const struct picture_making *m)
{
    return crew_decoding_slot(&m->decoding, m->size);
}

size_t making_expect(struct picture_making *m)
{
    choose_sizes(m);
    return making_length(m);
}

int making_charge(struct picture_making *m, size_t room, struct charge *frame)
{
    const struct crew_decoding *d = &m->decoding;
    uint64_t beside = d->wish.limits.memory - MEMORY_LEAST + making_slot(m);
    beside += is_scaled(d) ? image_pixels_size(&d->decoded) : 0;
    *frame = charge_like(&m->charge);
    if (charge_add(&m->charge, beside, m->why) == 0 && charge_add(frame, room, m->why) == 0)
        return 0;
    return room + beside <= m->control->config.mount->request_memory ? -EAGAIN : -ENOMEM;
}

int making_fetch(struct picture_making *m)
{
    return fetch_up_to(m, HEAD_LONG);
}

int making_decode(struct picture_making *m, const struct image_frame *frame, uint64_t *took)
{
    struct image_reason reason = {""};
    int error = fetch_up_to(m, m->size);
    if (error)
        return error;
    memcpy(frame->bytes, m->npy, m->npy_length);
    uint64_t began = clock_now();
    const struct crew_file file = file_of(m);
    enum image_verdict verdict = crew_decode(m->crew, &file, &m->decoding, frame->bytes + m->npy_length, &reason);
    *took = clock_now() - began;
    return verdict == IMAGE_FINE ? 0 : say_verdict(m, verdict, &reason);
}

void making_fini(struct picture_making *m)
{
    free(m->bytes);
    charge_fini(&m->charge);
}
