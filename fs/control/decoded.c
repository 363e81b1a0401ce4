/* The tree below decoded/. Inode numbers:
 *
 *   001 │ 0 │ PIXELS, 16 bits; 0: not scaled │ number in the catalog, 44 bits */
#include "fs/control/decoded.h"

#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/jobs.h"
#include "fs/control/pictures.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/size.h"

#include <errno.h>
#include <string.h>

enum { SIDE_AT = 44, SIDE_MOST = 65535, SUFFIX = 4 };

struct decoded_place {
    uint64_t ino; /* number in the catalog */
    uint32_t side;
};

static struct decoded_place place_of(uint64_t ino)
{
    return (struct decoded_place){ino & ((UINT64_C(1) << SIDE_AT) - 1), (uint32_t)(ino >> SIDE_AT) & SIDE_MOST};
}

static uint64_t number_of(struct decoded_place place)
{
    return INO_DECODED | (uint64_t)place.side << SIDE_AT | place.ino;
}

/* Permissions are as in the data mount; the kernel enforces them. */
static int place_stat(const struct control *control, struct decoded_place place, uint64_t length, struct stat *st)
{
    int error = catalog_stat(control->config.catalog, place.ino, st);
    if (error)
        return error;
    st->st_ino = number_of(place);
    st->st_mode = store_limit_mode(control->config.store, place.ino, st->st_mode);
    st->st_blksize = 128 << 10;
    st->st_mode &= ~(mode_t)0222;
    if (!S_ISREG(st->st_mode))
        return 0;
    st->st_mode &= ~(mode_t)0111;
    st->st_nlink = 1;
    st->st_size = (off_t)length;
    st->st_blocks = (st->st_size + 511) / 512;
    return 0;
}

int decoded_root(struct control *control, struct stat *st)
{
    return control_filled(control) ? place_stat(control, (struct decoded_place){.ino = CATALOG_ROOT}, 0, st) : -EAGAIN;
}

/* A decimal number; leading zeros are allowed. */
static bool parse_side(const char *name, uint32_t *side)
{
    const char *end = name + strlen(name);
    uint64_t value;
    bool fits = number_take(&name, end, SIDE_MOST, &value) && name == end && value > 0;
    *side = fits ? (uint32_t)value : 0;
    return fits;
}

static int find_directory(const struct catalog *c, const char *name, struct decoded_place *place)
{
    uint64_t ino;
    uint32_t file;
    int error = catalog_lookup(c, place->ino, name, strlen(name), &ino);
    if (!error && catalog_ino_file(c, ino, &file) == -EISDIR) {
        place->ino = ino;
        return 0;
    }
    if (place->ino != CATALOG_ROOT || place->side || !parse_side(name, &place->side))
        return error && error != -ENOENT ? error : -ENOENT;
    return 0;
}

/* Find a name below `place`. A directory of the dataset takes precedence over PIXELS: its path is documented. */
static int find_place(const struct catalog *c, const char *name, struct decoded_place *place, bool *is_file)
{
    size_t n = strlen(name);
    uint64_t ino;
    uint32_t file;
    *is_file = n > SUFFIX && strcmp(name + n - SUFFIX, ".npy") == 0 &&
               catalog_lookup(c, place->ino, name, n - SUFFIX, &ino) == 0 && catalog_ino_file(c, ino, &file) == 0;
    if (!*is_file)
        return find_directory(c, name, place);
    place->ino = ino;
    return 0;
}

static void note_picture(fuse_req_t req, struct decoded_place place, int error, const struct str *why)
{
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    if (error == -EINTR)
        return;
    if (!path || catalog_path(control_of(req)->config.catalog, place.ino, path, CATALOG_PATH_MAX) < 0)
        control_note_request(req, error, why, "decoded/…");
    else if (place.side)
        control_note_request(req, error, why, "decoded/%u/%s.npy", place.side, path);
    else
        control_note_request(req, error, why, "decoded/%s.npy", path);
}

static struct picture_key key_of(const struct control *control, struct decoded_place place)
{
    struct picture_key key = {.side = place.side};
    catalog_ino_file(control->config.catalog, place.ino, &key.file);
    return key;
}

static int stat_picture(struct request_job *job, struct stat *st)
{
    struct control *control = control_of(job->req);
    struct decoded_place place = place_of(job->ino);
    CLEANUP_STR struct str why = STR_INIT;
    uint64_t length;
    int error = pictures_length(control, job, key_of(control, place), &length, &why);
    if (error)
        note_picture(job->req, place, error, &why);
    return error ? error : place_stat(control, place, length, st);
}

/* Known images are answered at once, even while all workers wait for the source: the kernel asks again after each read,
 * for the access time. */
static bool stat_known(fuse_req_t req, uint64_t ino, struct stat *st)
{
    struct control *control = control_of(req);
    struct decoded_place place = place_of(ino);
    uint64_t length;
    return pictures_known(control->pictures, key_of(control, place), &length) &&
           place_stat(control, place, length, st) == 0;
}

static void run_entry(struct request_job *job)
{
    struct fuse_entry_param e = {
        .ino = job->ino, .attr_timeout = entry_timeout(control_of(job->req)), .entry_timeout = FOREVER};
    int error = stat_picture(job, &e.attr);
    if (error)
        fuse_reply_err(job->req, -error);
    else
        fuse_reply_entry(job->req, &e);
}

static void run_attributes(struct request_job *job)
{
    struct stat st;
    int error = stat_picture(job, &st);
    if (error)
        fuse_reply_err(job->req, -error);
    else
        fuse_reply_attr(job->req, &st, entry_timeout(control_of(job->req)));
}

static void reply_pixels(fuse_req_t req, struct decoded_picture *picture, size_t size, uint64_t offset)
{
    size_t at = offset < picture->length ? (size_t)offset : picture->length, left = picture->length - at;
    struct pictures *pictures = control_of(req)->pictures;
    pid_t reader = fuse_req_ctx(req)->pid;
    left = size < left ? size : left;
    fuse_reply_buf(req, picture->bytes + at, left);
    pictures_put(pictures, picture, left, reader);
}

static void run_pixels(struct request_job *job)
{
    struct control *control = control_of(job->req);
    struct decoded_place place = place_of(job->ino);
    CLEANUP_STR struct str why = STR_INIT;
    struct decoded_picture *picture;
    int error = pictures_get(control, job, key_of(control, place), &picture, &why);
    if (error) {
        note_picture(job->req, place, error, &why);
        fuse_reply_err(job->req, -error);
        return;
    }
    reply_pixels(job->req, picture, job->size, job->offset);
}

static void defer(fuse_req_t req, struct request_job *job)
{
    job->work.class = control_is_owner(control_of(req), fuse_req_ctx(req)->uid) ? WORK_DECODE : WORK_DECODE_OTHERS;
    job->of_anybody = true;
    job_defer(req, job, "decoded");
}

void decoded_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct control *control = control_of(req);
    struct fuse_entry_param e = {.attr_timeout = entry_timeout(control), .entry_timeout = FOREVER};
    struct decoded_place place = place_of(parent);
    bool is_file = false;
    int error = control_filled(control) ? find_place(control->config.catalog, name, &place, &is_file) : -EAGAIN;
    e.ino = number_of(place);
    if (!error && is_file && !stat_known(req, e.ino, &e.attr)) {
        defer(req, &(struct request_job){.run = run_entry, .ino = e.ino});
        return;
    }
    if (!error && !is_file)
        error = place_stat(control, place, 0, &e.attr);
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_entry(req, &e);
}

void decoded_getattr(fuse_req_t req, fuse_ino_t ino)
{
    struct control *control = control_of(req);
    struct stat st;
    uint32_t file;
    if (!control_filled(control)) {
        fuse_reply_err(req, EAGAIN);
        return;
    }
    bool is_file = catalog_ino_file(control->config.catalog, place_of(ino).ino, &file) == 0;
    if (is_file && !stat_known(req, ino, &st)) {
        defer(req, &(struct request_job){.run = run_attributes, .ino = ino});
        return;
    }
    int error = is_file ? 0 : place_stat(control, place_of(ino), 0, &st);
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_attr(req, &st, entry_timeout(control));
}

void decoded_read(fuse_req_t req, fuse_ino_t ino, size_t size, uint64_t offset)
{
    struct control *control = control_of(req);
    struct picture_key key = {.side = place_of(ino).side};
    struct decoded_picture *picture;
    int error =
        control_filled(control) ? catalog_ino_file(control->config.catalog, place_of(ino).ino, &key.file) : -EAGAIN;
    if (error)
        fuse_reply_err(req, -error);
    else if ((picture = pictures_kept(control->pictures, key)))
        reply_pixels(req, picture, size, offset);
    else
        defer(req, &(struct request_job){.run = run_pixels, .ino = ino, .size = size, .offset = offset});
}

bool decoded_child(const struct control *control, uint64_t ino, uint64_t place, struct decoded_entry *entry)
{
    const struct catalog *c = control->config.catalog;
    struct decoded_place at = place_of(ino);
    uint32_t file;
    size_t n;
    if (!control_filled(control) || catalog_child(c, at.ino, place, &at.ino) != 0)
        return false;
    int error = catalog_ino_file(c, at.ino, &file);
    const char *text = catalog_name(c, at.ino, &n);
    *entry = (struct decoded_entry){.ino = number_of(at), .type = error ? S_IFDIR : S_IFREG};
    if ((error && error != -EISDIR) || n + (error ? 0 : SUFFIX) >= sizeof entry->name)
        return true; /* a symlink, or the name with `.npy` would be too long */
    memcpy(entry->name, text, n);
    strcpy(entry->name + n, error ? "" : ".npy");
    return true;
}

/* Per byte, since a large sample takes many READs. */
static uint64_t fetch_time(const struct control *control, const struct store_stats *stats)
{
    const struct catalog *c = control->config.catalog;
    double nanoseconds = 0, bytes = 0;
    for (int i = 0; i < PLACES; i++) {
        nanoseconds += (double)stats->latency_sum[i];
        bytes += (double)stats->bytes[i];
    }
    if (bytes <= 0 || !control_filled(control) || catalog_files(c) == 0)
        return 0;
    return (uint64_t)(nanoseconds / bytes * (double)catalog_bytes(c) / catalog_files(c));
}

void decoded_add_status(struct json *json, struct control *control, const struct store_stats *stats)
{
    struct picture_stats s;
    pictures_stats(control->pictures, &s);
    json_begin_object(json, "decoded");
    json_uints(json, {"pictures", s.decoded}, {"hits", s.hits}, {"failed", s.failed}, {"kept", s.kept},
               {"most", control->config.mount->decoded});
    json_end_object(json);
    json_begin_object(json, "upstream");
    json_uints(json, {"fetch_ns", fetch_time(control, stats)},
               {"decode_ns", s.decoded ? s.nanoseconds / s.decoded : 0});
    json_end_object(json);
}
