/* A layer that injects faults, for tests.
 *
 * The specification is a list of words, separated by commas or white space:
 *
 *   match=GLOB        all other words apply only to files whose path matches; `*` also matches slashes
 *   delay=MS          wait before the answer; delay_match=GLOB: only for these files
 *   hang[=GLOB]       do not answer until the specification changes
 *   errno=NAME        fail with this error, e.g. EIO
 *   flip=N            flip one bit of each Nth answer
 *   truncate=N        leave out the last byte of each Nth answer (only of get: read has a fixed length)
 *   every=N           errno only for each Nth call
 *   stat=MS           delay of the scan per file or directory; implemented in fs/catalog/look.c
 *   file=PATH         while this file is readable, its text is the specification, from the next call on. An invalid
 *                     text is logged and changes nothing
 *
 * Threads: any number call. `now` is replaced as a whole with the lock held. Each call works on its own copy. */
#include "fs/store/source.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/size.h"
#include "fs/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { GLOB_BYTES = 256, TEXT_BYTES = 4096, HANG_POLL_MS = 5, ERRNOS = 134 };

struct spec {
    char match[GLOB_BYTES], delay_match[GLOB_BYTES], hang[GLOB_BYTES]; /* "": all files, all files, none */
    char file[PATH_MAX];
    uint64_t delay, every, flip, truncate, stat;
    int error;
};

struct fault {
    struct layer layer;
    struct layer_ops ops;
    struct layer *below;
    const struct catalog *catalog;
    struct spec given;
    _Atomic uint64_t calls, answers;

    pthread_mutex_t lock;
    struct spec now;       /* guarded by lock */
    bool there;            /* lock: the file is readable */
    char text[TEXT_BYTES]; /* lock: the text that `now` was parsed from */
};

static struct fault *fault_of(struct layer *layer)
{
    return (struct fault *)layer;
}

static int parse_errno(const char *name, int *error)
{
    for (int e = 1; e < ERRNOS; e++) {
        const char *known = strerrorname_np(e);
        if (known && !strcmp(known, name)) {
            *error = -e;
            return 0;
        }
    }
    return -EINVAL;
}

static int parse_text(const char *value, char *out, size_t n)
{
    if (strlen(value) >= n)
        return -EINVAL;
    strcpy(out, value);
    return 0;
}

static int parse_word(struct spec *spec, char *word)
{
    char *value = strchr(word, '=');
    if (!value && !strcmp(word, "hang"))
        return parse_text("*", spec->hang, sizeof spec->hang);
    if (!value)
        return -EINVAL;
    *value++ = '\0';
    const struct {
        const char *key;
        char *text;
        size_t n;
        uint64_t *number;
    } keys[] = {
        {"match", spec->match, sizeof spec->match, NULL},
        {"delay_match", spec->delay_match, sizeof spec->delay_match, NULL},
        {"hang", spec->hang, sizeof spec->hang, NULL},
        {"file", spec->file, sizeof spec->file, NULL},
        {"delay", NULL, 0, &spec->delay},
        {"every", NULL, 0, &spec->every},
        {"flip", NULL, 0, &spec->flip},
        {"truncate", NULL, 0, &spec->truncate},
        {"stat", NULL, 0, &spec->stat},
    };
    if (!strcmp(word, "errno"))
        return parse_errno(value, &spec->error);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(word, keys[i].key))
            return keys[i].text ? parse_text(value, keys[i].text, keys[i].n)
                                : number_parse(value, 0, UINT32_MAX, keys[i].number);
    return -EINVAL;
}

static int spec_parse(const char *text, struct spec *spec)
{
    char words[TEXT_BYTES];
    if (parse_text(text, words, sizeof words) < 0) {
        log_error("faults: the specification is too long");
        return -EINVAL;
    }
    *spec = (struct spec){.every = 1};
    char *rest;
    for (char *word = strtok_r(words, ", \t\n", &rest); word; word = strtok_r(NULL, ", \t\n", &rest))
        if (parse_word(spec, word) < 0) {
            log_error("faults: %s: not understood", word);
            return -EINVAL;
        }
    return 0;
}

/* The specification for this call: that of the file or, while it is unreadable, the original one. */
static void spec_now(struct fault *f, struct spec *spec)
{
    CLEANUP_STR struct str read = STR_INIT;
    struct spec next = f->given;
    bool there = *f->given.file && file_read(AT_FDCWD, f->given.file, TEXT_BYTES - 1, &read) == 0;
    const char *text = there && read.data ? read.data : "";
    LOCK_SCOPE(&f->lock);
    if (there != f->there || strcmp(f->text, text) != 0) {
        f->there = there;
        strcpy(f->text, text);
        if (!there || spec_parse(text, &next) == 0)
            f->now = next;
    }
    *spec = f->now;
}

static bool file_matches(struct fault *f, const char *glob, uint32_t file)
{
    char path[CATALOG_PATH_MAX];
    if (!*glob)
        return true;
    return catalog_path(f->catalog, catalog_file_ino(f->catalog, file), path, sizeof path) >= 0 &&
           fnmatch(glob, path, 0) == 0;
}

static void wait_ms(uint64_t ms)
{
    struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        continue;
}

/* Faults that come before the answer. `spec` becomes the specification after the delay. */
static int harm_before(struct fault *f, const struct span *span, struct spec *spec)
{
    spec_now(f, spec);
    while (*spec->hang && file_matches(f, spec->match, span->file) && file_matches(f, spec->hang, span->file)) {
        wait_ms(HANG_POLL_MS);
        spec_now(f, spec);
    }
    if (!file_matches(f, spec->match, span->file)) {
        spec->flip = spec->truncate = 0;
        return 0;
    }
    if (spec->delay && file_matches(f, spec->delay_match, span->file))
        wait_ms(spec->delay);
    if (!spec->error)
        return 0;
    uint64_t call = atomic_fetch_add(&f->calls, 1) + 1;
    return spec->every <= 1 || call % spec->every == 0 ? spec->error : 0;
}

static bool is_nth(uint64_t n, uint64_t answer)
{
    return n && answer % n == 0;
}

/* The layer below owns the bytes, so a copy is changed. */
static int flip_piece(struct answer *answer)
{
    struct iovec *piece = &answer->piece[answer->pieces - 1];
    char *copy = malloc(piece->iov_len);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, piece->iov_base, piece->iov_len);
    copy[piece->iov_len / 2] ^= 0x10;
    piece->iov_base = copy;
    answer_pin(answer, free, copy);
    return 0;
}

static int fault_get(struct layer *layer, const struct span *span, struct answer *answer)
{
    struct fault *f = fault_of(layer);
    struct spec spec;
    int error = harm_before(f, span, &spec);
    if (!error)
        error = f->below->ops->get(f->below, span, answer);
    if (error)
        return error;
    uint64_t n = atomic_fetch_add(&f->answers, 1) + 1;
    if (is_nth(spec.truncate, n))
        answer->piece[answer->pieces - 1].iov_len--;
    return is_nth(spec.flip, n) ? flip_piece(answer) : 0;
}

static int fault_read(struct layer *layer, const struct span *span, const struct iovec *into, int count)
{
    struct fault *f = fault_of(layer);
    struct spec spec;
    int error = harm_before(f, span, &spec);
    if (!error)
        error = f->below->ops->read(f->below, span, into, count);
    if (error)
        return error;
    if (is_nth(spec.flip, atomic_fetch_add(&f->answers, 1) + 1))
        ((char *)into[0].iov_base)[into[0].iov_len / 2] ^= 0x10;
    return 0;
}

static void fault_idle(struct layer *layer)
{
    layer_idle(fault_of(layer)->below);
}

static void fault_stop(struct layer *layer)
{
    layer_stop(fault_of(layer)->below);
}

static void fault_destroy(struct layer *layer)
{
    struct fault *f = fault_of(layer);
    layer_destroy(f->below);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

int fault_create(const struct catalog *catalog, const char *specification, struct layer *below, struct layer **layer)
{
    CLEANUP_FREE struct fault *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    int error = spec_parse(specification, &f->given);
    if (error)
        return error;
    f->ops = (struct layer_ops){
        .get = fault_get,
        .read = below->ops->read ? fault_read : NULL,
        .idle = fault_idle,
        .stop = fault_stop,
        .destroy = fault_destroy,
    };
    f->layer.ops = &f->ops;
    f->below = below;
    f->catalog = catalog;
    f->now = f->given;
    pthread_mutex_init(&f->lock, NULL);
    *layer = &steal_pointer(f)->layer;
    return 0;
}
