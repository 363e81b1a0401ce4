/* See filling.h. */
#include "tests/fs/store/filling.h"

#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/scanner.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void filling_begin(struct filling *f)
{
    static int number;
    *f = (struct filling){.codec = value_codec_create(1)};
    snprintf(f->source, sizeof f->source, "%s/source-%d", test_directory(), number++);
    if (!f->codec || dir_make(f->source, 0755))
        bail_out("make %s", f->source);
}

static const char *path_of(const struct filling *f, const char *name)
{
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s", f->source, name);
    return path;
}

void filling_add(struct filling *f, const char *name, uint64_t size)
{
    int fd = open(path_of(f, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        bail_out("make %s: %s", name, strerror(errno));
    close(fd);
}

void filling_add_many(struct filling *f, const char *name, int files, uint64_t size)
{
    char path[64];
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof path, "%s-%03d", name, i);
        filling_add(f, path, size);
    }
}

void filling_remove(struct filling *f, const char *name)
{
    if (unlink(path_of(f, name)) < 0)
        bail_out("remove %s: %s", name, strerror(errno));
}

static void close_catalog(struct filling *f)
{
    cut_fini(&f->parts);
    catalog_close(f->catalog);
    f->catalog = NULL;
}

void filling_scan(struct filling *f)
{
    close_catalog(f);
    struct scan_options options = {.threads = 2, .rescan = RESCAN_ALWAYS};
    struct scan_progress result;
    struct str why = STR_INIT;
    char path[8192];
    snprintf(path, sizeof path, "%s.catalog", f->source);
    int root = open(f->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = root < 0 ? -errno : scan_source(root, path, &options, &f->catalog, &why, &result);
    if (error || parts_init(&f->parts, f->catalog))
        bail_out("scan %s: %s", f->source, why.data ? why.data : strerror(-error));
    close(root);
    str_fini(&why);
}

void filling_end(struct filling *f)
{
    close_catalog(f);
    value_codec_destroy(f->codec);
    dir_remove_tree(AT_FDCWD, f->source);
}

uint32_t filling_file(const struct filling *f, const char *name)
{
    uint64_t ino;
    uint32_t file;
    if (catalog_find(f->catalog, name, strlen(name), &ino) || catalog_ino_file(f->catalog, ino, &file))
        bail_out("no file %s", name);
    return file;
}

uint64_t filling_size(const struct filling *f, uint32_t file)
{
    return catalog_file(f->catalog, file).size;
}

static uint64_t word_at(uint64_t seed, bool text, uint64_t index)
{
    uint64_t z = seed + (text ? index / 512 : index) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return z ^ z >> 29;
}

void filling_bytes(const struct filling *f, uint32_t file, uint64_t offset, void *out, size_t n)
{
    size_t length;
    const char *name = catalog_name(f->catalog, catalog_file_ino(f->catalog, file), &length);
    uint64_t seed = hash64(name, length, 0);
    bool text = strncmp(name, "text", 4) == 0;
    for (size_t i = 0; i < n;) {
        uint64_t word = word_at(seed, text, (offset + i) / 8);
        size_t skip = (offset + i) % 8, some = 8 - skip < n - i ? 8 - skip : n - i;
        memcpy((char *)out + i, (char *)&word + skip, some);
        i += some;
    }
}

static struct {
    char path[64];
    pid_t owner;
} ram_dir[16];
static int ram_dirs;

static void remove_rams(void)
{
    while (ram_dirs-- > 0)
        if (ram_dir[ram_dirs].owner == getpid())
            dir_remove_tree(AT_FDCWD, ram_dir[ram_dirs].path);
}

const char *filling_ram(void)
{
    if (!ram_dirs)
        atexit(remove_rams);
    if (ram_dirs == 16)
        bail_out("too many directories");
    strcpy(ram_dir[ram_dirs].path, "/dev/shm/dealfs-test-XXXXXX");
    ram_dir[ram_dirs].owner = getpid();
    if (!mkdtemp(ram_dir[ram_dirs].path))
        bail_out("mkdtemp %s: %s", ram_dir[ram_dirs].path, strerror(errno));
    return ram_dir[ram_dirs++].path;
}

struct shard *filling_open(const struct filling *f, const char *ram, uint64_t ram_bytes, const char *ssd,
                           uint64_t ssd_bytes)
{
    struct shard_config config = {.catalog = f->catalog};
    config.tier[TIER_RAM] = (struct tier_config){.directory = ram, .capacity = ram_bytes};
    config.tier[TIER_SSD] = (struct tier_config){.directory = ssd, .capacity = ssd_bytes};
    struct shard *s;
    int error = shard_open(&config, &s);
    if (error)
        bail_out("shard_open: %s", strerror(-error));
    return s;
}

struct shard *filling_open_tier(const struct filling *f, enum tier_name tier, const char *directory, uint64_t bytes)
{
    return tier == TIER_RAM ? filling_open(f, directory, bytes, NULL, 0) : filling_open(f, NULL, 0, directory, bytes);
}

struct tier_status filling_status(struct shard *s, enum tier_name tier)
{
    struct tier_status status;
    shard_status(s, tier, &status);
    return status;
}

void filling_log(void)
{
    int log = open(test_path("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
        bail_out("open the log: %s", strerror(errno));
    log_open("test", log, false);
}

int filling_put(const struct filling *f, struct shard *s, struct value_codec_state *codec, uint32_t file,
                uint64_t offset, uint32_t length)
{
    struct room room;
    int error = shard_reserve(s, file, offset, length, &room);
    if (error)
        return error;
    for (int i = 0; i < room.values; i++) {
        filling_bytes(f, file, offset, room.value[i].iov_base, room.value[i].iov_len);
        offset += room.value[i].iov_len;
    }
    shard_commit(codec, &room);
    return 0;
}

int filling_put_file(const struct filling *f, struct shard *s, uint32_t file)
{
    uint64_t size = filling_size(f, file);
    for (uint64_t offset = 0; offset < size; offset += PIECE_BYTES) {
        uint32_t length = size - offset < PIECE_BYTES ? (uint32_t)(size - offset) : PIECE_BYTES;
        int error = filling_put(f, s, f->codec, file, offset, length);
        if (error)
            return error;
    }
    return 0;
}

int filling_put_all(const struct filling *f, struct shard *s)
{
    int last = 0;
    for (uint32_t file = 0; file < catalog_files(f->catalog); file++) {
        int error = filling_put_file(f, s, file);
        last = error ? error : last;
    }
    return last;
}

static bool is_right(const struct filling *f, uint32_t file, uint64_t offset, uint32_t length, const struct answer *a)
{
    char *expected = malloc(VALUE_BYTES);
    uint64_t end = offset + length;
    bool right = true;
    for (int i = 0; i < a->pieces && right; i++) {
        size_t n = a->piece[i].iov_len;
        right = n <= VALUE_BYTES && n <= end - offset;
        if (right) {
            filling_bytes(f, file, offset, expected, n);
            right = memcmp(expected, a->piece[i].iov_base, n) == 0;
            offset += n;
        }
    }
    free(expected);
    return right && offset == end;
}

int filling_check(const struct filling *f, struct shard *s, uint32_t file, uint64_t offset, uint32_t length)
{
    struct span span = {file, length, offset};
    struct answer answer = {0};
    enum tier_name slowest;
    int error = shard_get(s, &span, TIER_SSD, &answer, &slowest);
    if (!error && !is_right(f, file, offset, length, &answer))
        error = -EBADMSG;
    answer_release(&answer);
    return error;
}

int filling_check_file(const struct filling *f, struct shard *s, uint32_t file)
{
    uint64_t size = filling_size(f, file);
    for (uint64_t offset = 0; offset < size; offset += SPAN_BYTES) {
        uint32_t length = size - offset < SPAN_BYTES ? (uint32_t)(size - offset) : SPAN_BYTES;
        int error = filling_check(f, s, file, offset, length);
        if (error)
            return error;
    }
    return 0;
}

struct outcome filling_check_all(const struct filling *f, struct shard *s)
{
    struct outcome o = {0, 0, 0};
    for (uint32_t file = 0; file < catalog_files(f->catalog); file++) {
        if (!filling_size(f, file))
            continue;
        int error = filling_check_file(f, s, file);
        o.right += error == 0;
        o.absent += error == -ENOENT;
        o.wrong += error != 0 && error != -ENOENT;
    }
    return o;
}
