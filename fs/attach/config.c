/* A table of fields defines how each is written and read, so that both always match. */
#include "fs/attach/config.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum field_kind { TEXT, OPTIONAL_TEXT, FLAG, OPTIONAL_FLAG, INT, ID, U64 };

struct field {
    const char *key;
    enum field_kind kind;
    size_t place;
};

#define FIELD(name, kind)                                                                                              \
    {                                                                                                                  \
#name, kind, offsetof(struct mount_config, name)                                                               \
    }

/* clang-format off */
static const struct field fields[] = {
    FIELD(source, TEXT),
    FIELD(source_identity, OPTIONAL_TEXT),
    FIELD(mountpoint, TEXT),
    FIELD(state, TEXT),
    FIELD(control, TEXT),
    FIELD(nested, FLAG),
    FIELD(data_minor, ID),
    FIELD(control_minor, ID),
    FIELD(ram_bytes, U64),
    FIELD(ram_path, OPTIONAL_TEXT),
    FIELD(ssd_bytes, U64),
    FIELD(ssd_path, OPTIONAL_TEXT),
    FIELD(zstd_level, INT),
    FIELD(verify_once, OPTIONAL_FLAG),
    FIELD(source_threads, INT),
    FIELD(source_rate, U64),
    FIELD(peer_timeout, U64),
    FIELD(decoded, U64),
    FIELD(request_memory, U64),
    FIELD(readahead, U64),
    FIELD(exchange, FLAG),
    FIELD(exchange_rate, U64),
    FIELD(feed, U64),
    FIELD(sampler_ranks, INT),
    FIELD(sampler_batch, INT),
    FIELD(sampler_seed, U64),
    FIELD(sampler_drop, FLAG),
    FIELD(sampler_under, OPTIONAL_TEXT),
    FIELD(metrics_file, OPTIONAL_TEXT),
    FIELD(owner_uid, ID),
    FIELD(owner_gid, ID),
    FIELD(allow_other, FLAG),
    FIELD(foreground, FLAG),
    FIELD(syslog, FLAG),
    FIELD(wait_join, FLAG),
    FIELD(rescan, INT),
    FIELD(identity_mtime, FLAG),
    FIELD(resize, INT),
    FIELD(quality, INT),
    FIELD(groups, INT),
    FIELD(mounter, OPTIONAL_TEXT),
    FIELD(foreign_pids, OPTIONAL_FLAG),
    FIELD(id, TEXT),
};
/* clang-format on */
enum { FIELDS = sizeof fields / sizeof fields[0], MOST = 1 << 20 };

_Static_assert(FIELDS <= 64, "a bit each");
_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "ids are 32 bits");

static void *field_member(const struct mount_config *config, const struct field *f)
{
    return (char *)config + f->place;
}

static void write_field(struct str *out, const struct mount_config *config, const struct field *f)
{
    const void *value = field_member(config, f);
    const char *text;
    switch (f->kind) {
    case TEXT:
    case OPTIONAL_TEXT:
        text = *(char *const *)value;
        if (!text)
            return;
        str_addf(out, "%s=", f->key);
        str_add_percent(out, text, strlen(text));
        str_adds(out, "\n");
        return;
    case FLAG:
    case OPTIONAL_FLAG:
        str_addf(out, "%s=%d\n", f->key, *(const bool *)value);
        return;
    case INT:
        str_addf(out, "%s=%d\n", f->key, *(const int *)value);
        return;
    case ID:
        str_addf(out, "%s=%" PRIu32 "\n", f->key, *(const uint32_t *)value);
        return;
    case U64:
        str_addf(out, "%s=%" PRIu64 "\n", f->key, *(const uint64_t *)value);
        return;
    }
}

static int write_fields(const struct mount_config *config, struct str *text)
{
    for (int i = 0; i < FIELDS; i++)
        write_field(text, config, &fields[i]);
    return text->failed ? -ENOMEM : 0;
}

int config_write(const struct mount_config *config)
{
    CLEANUP_STR struct str text = STR_INIT, path = STR_INIT;
    str_addf(&path, "%s/config", config->state);
    if (write_fields(config, &text) || path.failed)
        return -ENOMEM;
    return file_write_atomic(AT_FDCWD, path.data, text.data, text.length, 0600);
}

int config_seal(const struct mount_config *config, int *fd)
{
    CLEANUP_STR struct str text = STR_INIT;
    if (write_fields(config, &text))
        return -ENOMEM;
    CLEANUP_CLOSE int memory = memfd_create("dealfs-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = memory < 0 ? -errno : file_write_all(memory, text.data, text.length);
    if (!error)
        error = file_seal(memory);
    if (!error)
        *fd = steal_fd(memory);
    return error;
}

static int read_text(char **to, char *text)
{
    size_t n = strlen(text);
    long length = percent_decode(text, n);
    if (length < 0 || memchr(text, 0, (size_t)length))
        return -EBADMSG;
    free(*to);
    *to = strndup(text, (size_t)length);
    return *to ? 0 : -ENOMEM;
}

static int read_field(struct mount_config *config, const struct field *f, char *text)
{
    static const uint64_t most[] = {
        [FLAG] = 1, [OPTIONAL_FLAG] = 1, [INT] = INT_MAX, [ID] = UINT32_MAX, [U64] = UINT64_MAX};
    void *value = field_member(config, f);
    uint64_t number;
    if (f->kind == TEXT || f->kind == OPTIONAL_TEXT)
        return read_text(value, text);
    if (number_parse(text, 0, most[f->kind], &number))
        return -EBADMSG;
    if (f->kind == FLAG || f->kind == OPTIONAL_FLAG)
        *(bool *)value = number;
    else if (f->kind == INT)
        *(int *)value = (int)number;
    else if (f->kind == ID)
        *(uint32_t *)value = (uint32_t)number;
    else
        *(uint64_t *)value = number;
    return 0;
}

/* An unknown key was written by another version, and may be ignored. */
static int read_line(struct mount_config *config, char *line, uint64_t *seen)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return -EBADMSG;
    *equals = '\0';
    for (int i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].key, line) == 0) {
            *seen |= UINT64_C(1) << i;
            return read_field(config, &fields[i], equals + 1);
        }
    return 0;
}

static int read_lines(struct mount_config *config, char *text)
{
    uint64_t seen = 0;
    for (char *line = text, *end; *line; line = end) {
        end = strchr(line, '\n');
        if (!end)
            return -EBADMSG;
        *end++ = '\0';
        int error = read_line(config, line, &seen);
        if (error)
            return error;
    }
    for (int i = 0; i < FIELDS; i++)
        if (fields[i].kind != OPTIONAL_TEXT && fields[i].kind != OPTIONAL_FLAG && !(seen & UINT64_C(1) << i))
            return -EBADMSG;
    return 0;
}

static int read_all(struct str *text, struct mount_config *config)
{
    if (text->failed)
        return -ENOMEM;
    if (text->length == 0 || memchr(text->data, 0, text->length))
        return -EBADMSG;
    int error = read_lines(config, text->data);
    if (error)
        config_fini(config);
    return error;
}

/* The file may be another user's: links are not followed, and FIFOs do not block. */
int config_read(const char *state, struct mount_config *config)
{
    CLEANUP_STR struct str path = STR_INIT, text = STR_INIT;
    struct stat st;
    memset(config, 0, sizeof *config);
    str_addf(&path, "%s/config", state);
    if (path.failed)
        return -ENOMEM;
    CLEANUP_CLOSE int fd = open(path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    int error = S_ISREG(st.st_mode) ? file_read_fd(fd, MOST, &text) : -EBADMSG;
    return error ? error : read_all(&text, config);
}

/* By position, because other processes share that of this descriptor. Not mapped: that would give memory to the holes
 * of a file that another user has made. */
static int copy_sealed(int fd, struct str *text)
{
    struct stat st;
    if (!file_is_sealed(fd))
        return -EPERM;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size > MOST)
        return -EBADMSG;
    char *to = str_reserve(text, (size_t)st.st_size);
    if (!to)
        return -ENOMEM;
    ssize_t n = pread(fd, to, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return n < 0 ? -errno : -EBADMSG;
    text->length += (size_t)n;
    text->data[text->length] = '\0';
    return 0;
}

int config_parse(struct str *text, struct mount_config *config)
{
    memset(config, 0, sizeof *config);
    return read_all(text, config);
}

int config_read_sealed(int fd, struct mount_config *config)
{
    CLEANUP_STR struct str text = STR_INIT;
    memset(config, 0, sizeof *config);
    int error = copy_sealed(fd, &text);
    return error ? error : read_all(&text, config);
}

/* Never opened by its path in /proc if it may be a file of another user, which could hang. */
static int open_sealed(pid_t keeper)
{
    char path[64];
    struct stat st;
    CLEANUP_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, keeper, 0);
    if (pidfd < 0)
        return -errno;
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, FD_CONFIG, 0);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "/proc/%d", (int)keeper);
    if (stat(path, &st) < 0 || st.st_uid != geteuid())
        return -EPERM;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)keeper, FD_CONFIG);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int config_text_of(pid_t process, struct str *text)
{
    CLEANUP_CLOSE int fd = open_sealed(process);
    return fd < 0 ? fd : copy_sealed(fd, text);
}

int config_of_keeper(pid_t keeper, const char *state, struct mount_config *config)
{
    CLEANUP_STR struct str text = STR_INIT;
    memset(config, 0, sizeof *config);
    int error = config_text_of(keeper, &text);
    if (!error)
        return config_parse(&text, config);
    return geteuid() != 0 ? config_read(state, config) : error;
}

void config_fini(struct mount_config *config)
{
    for (int i = 0; i < FIELDS; i++)
        if (fields[i].kind == TEXT || fields[i].kind == OPTIONAL_TEXT)
            free(*(char **)field_member(config, &fields[i]));
    memset(config, 0, sizeof *config);
}
