/* RocksDB with all of its machinery turned off: no log, memtable, compaction, cache or compression.
 *
 * RocksDB reads a file only when it ingests it, so only a few files stay open in it: an open file costs a descriptor
 * and the memory of its index. */
#include "fs/store/rocks-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    BLOCK = 4096,      /* a larger value gets its own block; smaller ones share one */
    BLOCK_RESTART = 1, /* no key shares bytes with the previous one */
    INDEX_RESTART = 16,
    LOG_FATAL = 4,
    DESCRIPTORS_SPARE = 256,
    TABLES = 64, /* maximum number of files that RocksDB keeps open */
    MANIFEST_STEP = 64 << 10,
};

/* RocksDB reports errors as text: the kind, the action, and the system's reason if there is one. The system's reason
 * counts most: RocksDB reports some failures of a disk as corruption. */
static int errno_of(const char *words)
{
    static const struct {
        const char *begin;
        int error;
    } kind[] = {{"Corruption: ", EBADMSG}, {"Invalid argument: ", EINVAL}, {"Not implemented: ", ENOTSUP}};
    size_t n = strlen(words);
    if (strstr(words, "lock hold by current process"))
        return -EBUSY;
    for (int error = 1; error <= EHWPOISON; error++) {
        const char *end = strerrordesc_np(error);
        if (end && n > strlen(end) && strcmp(words + n - strlen(end), end) == 0)
            return error == EAGAIN ? -EBUSY : -error;
    }
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (strncmp(words, kind[i].begin, strlen(kind[i].begin)) == 0)
            return -kind[i].error;
    return -EIO;
}

int rocks_take_error(char *words, struct str *why)
{
    if (!words)
        return 0;
    int error = errno_of(words);
    if (why)
        str_adds(why, words);
    rocksdb_free(words);
    return error;
}

int rocks_log_error(char *words, const char *what, const char *where)
{
    if (!words)
        return 0;
    log_limited(LOG_LEVEL_WARNING, 5, "%s %s: %s", what, where, words);
    int error = rocks_take_error(words, NULL);
    return error == -EBADMSG ? -EIO : error; /* nothing was read */
}

/* A file with direct reads needs a descriptor, a mapped file does not. */
static int descriptors(const struct rocks_config *config)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    uint64_t wanted = (config->ram ? 0 : config->segments) + TABLES + DESCRIPTORS_SPARE;
    if (limit.rlim_cur < wanted && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    uint64_t left = limit.rlim_cur < INT_MAX ? limit.rlim_cur : INT_MAX;
    return left > TABLES + DESCRIPTORS_SPARE ? (int)left - TABLES - DESCRIPTORS_SPARE : 0;
}

static bool reads_directly(const char *directory)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/new-probe", directory);
    if (path.failed)
        return false;
    CLEANUP_CLOSE int fd = open(path.data, O_CREAT | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
    unlink(path.data);
    return fd >= 0;
}

static rocksdb_block_based_table_options_t *table_options(void)
{
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_no_block_cache(t, 1);
    rocksdb_block_based_options_set_block_size(t, BLOCK);
    rocksdb_block_based_options_set_block_restart_interval(t, BLOCK_RESTART);
    rocksdb_block_based_options_set_index_block_restart_interval(t, INDEX_RESTART);
    rocksdb_block_based_options_set_format_version(t, ROCKS_TABLE_FORM);
    rocksdb_block_based_options_set_checksum(t, ROCKS_XXH64);
    return t;
}

static uint64_t manifest_bytes(uint64_t segments)
{
    return (4u << 20) + 512 * segments;
}

uint64_t rocks_overhead(uint64_t segments)
{
    return 2 * manifest_bytes(segments) + (1u << 20); /* two manifests while one is replaced; options, log, lock */
}

static rocksdb_options_t *database_options(const struct rocks_config *config, bool direct)
{
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_block_based_table_options_t *t = table_options();
    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_block_based_options_destroy(t);
    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_options_set_paranoid_checks(o, 1); /* with 0, a full disk loses data silently */
    rocksdb_options_set_use_direct_reads(o, direct);
    rocksdb_options_set_compression(o, rocksdb_no_compression);
    rocksdb_options_set_disable_auto_compactions(o, 1);
    rocksdb_options_set_max_open_files(o, TABLES);
    rocksdb_options_set_max_background_jobs(o, 1);
    rocksdb_options_set_write_buffer_size(o, 64 << 10);
    rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    rocksdb_options_set_stats_dump_period_sec(o, 0);
    rocksdb_options_set_stats_persist_period_sec(o, 0);
    rocksdb_options_set_info_log_level(o, LOG_FATAL);
    rocksdb_options_set_keep_log_file_num(o, 1);
    rocksdb_options_set_manifest_preallocation_size(o, MANIFEST_STEP);
    rocksdb_options_set_max_manifest_file_size(o, manifest_bytes(config->segments));
    return o;
}

int rocks_create(const struct rocks_config *config, struct rocks **out)
{
    struct rocks *r = calloc(1, sizeof *r);
    if (!r || !(r->directory = strdup(config->directory))) {
        free(r);
        return -ENOMEM;
    }
    r->note = config->note;
    r->direct = !config->ram && reads_directly(config->directory);
    r->descriptors = descriptors(config);
    r->options = database_options(config, r->direct);
    r->env = rocksdb_envoptions_create();
    r->ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(r->ingest, 1);
    *out = r;
    return 0;
}

int rocks_open_listed(struct rocks *r, struct str *why)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/" ROCKS_DATABASE, r->directory);
    if (path.failed)
        return -ENOMEM;
    char *words = NULL;
    r->db = rocksdb_open(r->options, path.data, &words);
    return rocks_take_error(words, why);
}

void rocks_close(struct rocks *r)
{
    if (!r)
        return;
    if (r->db)
        rocksdb_close(r->db);
    rocksdb_ingestexternalfileoptions_destroy(r->ingest);
    rocksdb_envoptions_destroy(r->env);
    rocksdb_options_destroy(r->options);
    free(r->directory);
    free(r);
}

static bool key_of(const char *bytes, size_t n, struct rocks_key *key)
{
    if (!bytes || n != sizeof *key)
        return false;
    memcpy(key, bytes, sizeof *key);
    *key = (struct rocks_key){be32toh(key->segment), be32toh(key->place)};
    return true;
}

static void describe(const rocksdb_livefiles_t *files, int i, struct rocks_file *file)
{
    struct rocks_key first = {0, 0}, last = {0, 0};
    size_t n;
    const char *bytes = rocksdb_livefiles_smallestkey(files, i, &n), *name = rocksdb_livefiles_name(files, i);
    bool whole = key_of(bytes, n, &first);
    bytes = rocksdb_livefiles_largestkey(files, i, &n);
    whole = key_of(bytes, n, &last) && whole && first.segment == last.segment && last.place == INDEX_PLACE;
    *file = (struct rocks_file){first.segment, whole, rocksdb_livefiles_size(files, i), ""};
    if (strlen(name) < sizeof file->name)
        strcpy(file->name, name);
}

int rocks_list(struct rocks *r, struct rocks_file **files, size_t *count)
{
    const rocksdb_livefiles_t *live = rocksdb_livefiles(r->db);
    *count = live ? (size_t)rocksdb_livefiles_count(live) : 0;
    *files = calloc(*count + 1, sizeof **files);
    for (size_t i = 0; i < *count && *files; i++)
        describe(live, (int)i, *files + i);
    if (live)
        rocksdb_livefiles_destroy(live);
    return live && *files ? 0 : -ENOMEM;
}

int rocks_find(struct rocks *r, uint32_t segment, struct rocks_file *file)
{
    CLEANUP_FREE struct rocks_file *files;
    size_t count;
    int error = rocks_list(r, &files, &count);
    for (size_t i = 0; i < count && !error; i++)
        if (files[i].segment == segment) {
            *file = files[i];
            return 0;
        }
    return error ? error : -ENOENT;
}

int rocks_open_path(const struct rocks *r, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int flags = r->direct ? fcntl(fd, F_GETFL) : -1;
    if (flags >= 0)
        (void)!fcntl(fd, F_SETFL, flags | O_DIRECT);
    return fd;
}

int rocks_open_file(const struct rocks *r, const char *name, bool *spare)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/" ROCKS_DATABASE "/%s", r->directory, name);
    int fd = path.failed ? -ENOMEM : rocks_open_path(r, path.data);
    *spare = fd < r->descriptors; /* higher numbers stay free for others */
    return fd;
}

char *rocks_buffer(uint64_t bytes)
{
    return aligned_alloc(ROCKS_ALIGN, (bytes / ROCKS_ALIGN + 3) * ROCKS_ALIGN);
}

static int read_aligned(int fd, uint64_t begin, uint64_t to, char *buffer)
{
    uint64_t end = (to + ROCKS_ALIGN - 1) / ROCKS_ALIGN * ROCKS_ALIGN;
    for (uint64_t at = begin; at < to;) {
        ssize_t n = pread(fd, buffer + (at - begin), end - at, (off_t)at);
        bool more = n > 0 && (n % ROCKS_ALIGN == 0 || at + (uint64_t)n >= to);
        if (!more && !(n < 0 && errno == EINTR))
            return n < 0 ? -errno : -EBADMSG;
        at += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

const char *rocks_read(int fd, uint64_t from, uint64_t to, char *buffer, int *error)
{
    uint64_t begin = from / ROCKS_ALIGN * ROCKS_ALIGN;
    *error = read_aligned(fd, begin, to, buffer);
    return *error ? NULL : buffer + (from - begin);
}

int rocks_drop(struct rocks *r, uint32_t segment)
{
    struct rocks_key first = rocks_key(segment, 0), last = rocks_key(segment, INDEX_PLACE);
    char *words = NULL;
    rocksdb_delete_file_in_range(r->db, (char *)&first, sizeof first, (char *)&last, sizeof last, &words);
    return rocks_log_error(words, "drop a segment of", r->directory);
}

int rocks_drop_open(struct rocks *r, const struct rocks_file *file)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/" ROCKS_DATABASE "/%s", r->directory, file->name);
    CLEANUP_CLOSE int fd = path.failed ? -1 : open(path.data, O_WRONLY | O_CLOEXEC);
    int error = rocks_drop(r, file->segment);
    if (!error && fd >= 0)
        (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)(file->bytes + ROCKS_HUGE_PAGE));
    return error;
}
