/* A mount's configuration, written and read. */
#include "fs/attach/config.h"
#include "fs/base/file.h"
#include "fs/wire/handover.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char *copy(const char *text)
{
    char *s = strdup(text);
    if (!s)
        bail_out("out of memory");
    return s;
}

static struct mount_config sample(const char *state)
{
    return (struct mount_config){
        .source = copy("/data/a b\nc=d%\xff"),
        .source_identity = copy("nfs4 of -1, server:/data, /, 2"),
        .mountpoint = copy("/mnt/x"),
        .state = copy(state),
        .control = copy("/c"),
        .nested = true,
        .data_minor = 8,
        .control_minor = 9,
        .ram_bytes = UINT64_MAX,
        .ssd_bytes = 7,
        .ssd_path = copy("/ssd"),
        .zstd_level = 3,
        .source_threads = 16,
        .peer_timeout = 5000000000,
        .owner_uid = 4294967294u,
        .owner_gid = 12,
        .allow_other = true,
        .syslog = true,
        .wait_join = true,
        .rescan = 2,
        .identity_mtime = true,
        .groups = 3,
        .decoded = 3 << 20,
        .request_memory = 1 << 20,
        .readahead = 8192,
        .exchange = true,
        .exchange_rate = 5 << 20,
        .id = copy("0123456789abcdef0123456789abcdef"),
    };
}

static void test_round(const char *state)
{
    struct mount_config a = sample(state), b;
    struct stat st;
    is_int(config_write(&a), 0, "write");
    ok(stat(test_path("config"), &st) == 0 && (st.st_mode & 07777) == 0600, "for nobody else");
    is_int(config_read(state, &b), 0, "read");
    is_str(b.source, a.source, "source, any byte");
    is_str(b.source_identity, a.source_identity, "source_identity");
    is_str(b.mountpoint, a.mountpoint, "mountpoint");
    is_str(b.state, a.state, "state");
    is_str(b.control, a.control, "control");
    is_str(b.id, a.id, "id");
    is_str(b.ssd_path, a.ssd_path, "ssd_path");
    ok(!b.ram_path && !b.metrics_file, "what was not there is not there");
    is_uint(b.ram_bytes, a.ram_bytes, "ram_bytes");
    is_uint(b.ssd_bytes, 7, "ssd_bytes");
    is_int(b.zstd_level, 3, "zstd_level");
    ok(b.wait_join && b.rescan == 2 && b.identity_mtime && b.groups == 3, "what its first join needs");
    is_int(b.source_threads, 16, "source_threads");
    is_uint(b.peer_timeout, 5000000000, "peer_timeout");
    is_uint(b.decoded, 3 << 20, "decoded");
    is_uint(b.request_memory, 1 << 20, "request_memory");
    is_uint(b.readahead, 8192, "readahead");
    ok(b.exchange, "exchange");
    is_uint(b.exchange_rate, 5 << 20, "exchange_rate");
    is_uint(b.owner_uid, 4294967294u, "owner_uid");
    is_uint(b.owner_gid, 12, "owner_gid");
    ok(b.nested && b.allow_other && b.syslog && !b.foreground, "flags");
    config_fini(&a);
    config_fini(&b);
    config_fini(&b);
}

static void rewrite(struct str *text)
{
    if (file_write_atomic(AT_FDCWD, test_path("config"), text->length ? text->data : "", text->length, 0600))
        bail_out("write config");
}

static void test_damaged(const char *state)
{
    struct str text = STR_INIT, more = STR_INIT;
    struct mount_config c, zero = {0};
    int refused = 0, lines = 0;
    if (file_read(AT_FDCWD, test_path("config"), 65536, &text))
        bail_out("read config");
    str_add(&more, text.data, text.length);
    str_adds(&more, "something_new=1\n");
    rewrite(&more);
    is_int(config_read(state, &c), 0, "a key of a later version is passed over");
    config_fini(&c);

    static const char *const bad[] = {"",
                                      "nonsense\n",
                                      "ram_bytes=many\n",
                                      "nested=2\n",
                                      "source=%zz\n",
                                      "source=%00\n",
                                      "owner_uid=4294967296\n",
                                      "zstd_level=-1\n",
                                      "id=half a line"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        str_clear(&more);
        if (*bad[i])
            str_add(&more, text.data, text.length);
        str_adds(&more, bad[i]);
        rewrite(&more);
        is_int(config_read(state, &c), -EBADMSG, "refused: '%.*s'", (int)strcspn(bad[i], "\n"), bad[i]);
        is_mem(&c, &zero, sizeof c, "and it is empty");
    }

    /* Cut off after any line but the last: one that has to be there is missing. */
    for (size_t at = 0; at + 1 < text.length; at++) {
        if (text.data[at] != '\n')
            continue;
        str_clear(&more);
        str_add(&more, text.data, at + 1);
        rewrite(&more);
        lines++;
        refused += config_read(state, &c) == -EBADMSG;
    }
    ok(lines > 10, "%d places to cut", lines);
    is_int(refused, lines, "cut off anywhere it is refused");
    str_fini(&text);
    str_fini(&more);
}

static void test_sealed(const char *state)
{
    struct mount_config a = sample(state), b;
    int fd = -1, plain;
    is_int(config_seal(&a, &fd), 0, "seal");
    is_int(config_read_sealed(fd, &b), 0, "read what is sealed");
    is_str(b.source, a.source, "its source");
    is_uint(b.control_minor, 9, "whose the control mount is");
    config_fini(&b);
    is_int(config_read_sealed(fd, &b), 0, "and again, from where others have left the position");
    config_fini(&b);
    ok(pwrite(fd, "x", 1, 0) < 0 && ftruncate(fd, 0) < 0, "nobody can change it");
    is_int(dup2(fd, FD_CONFIG), FD_CONFIG, "as a keeper has it");
    is_int(config_of_keeper(getpid(), "/nowhere", &b), 0, "a keeper's own");
    is_str(b.mountpoint, "/mnt/x", "its mountpoint");
    config_fini(&b);
    close(FD_CONFIG);
    if (geteuid() == 0)
        ok(config_of_keeper(getpid(), state, &b) < 0, "root reads none from the state directory");
    else
        is_int(config_of_keeper(getpid(), state, &b), 0, "that of one without, from its state directory");
    config_fini(&b);
    plain = open(test_path("config"), O_RDONLY);
    is_int(config_read_sealed(plain, &b), -EPERM, "a file is not taken for it");
    close(plain);
    close(fd);
    config_fini(&a);
}

/* Another user could make root fill the memory of his sealed file. */
static void test_sealed_hole(void)
{
    struct mount_config c;
    struct stat before, after;
    int fd = memfd_create("hole", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, 65536) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 || fstat(fd, &before) < 0)
        bail_out("make a sealed file");
    ok(config_read_sealed(fd, &c) < 0, "a sealed hole is no configuration");
    ok(fstat(fd, &after) == 0 && after.st_blocks == before.st_blocks, "and to read it gives it no memory");
    close(fd);
}

static void test_others(const char *state)
{
    struct mount_config c;
    unlink(test_path("config"));
    ok(mkfifo(test_path("config"), 0600) == 0, "a pipe in its place");
    is_int(config_read(state, &c), -EBADMSG, "is not waited for");
    unlink(test_path("config"));
    ok(symlink("elsewhere", test_path("config")) == 0, "a symlink in its place");
    is_int(config_read(state, &c), -ELOOP, "is not followed");
}

int main(void)
{
    struct mount_config c;
    const char *state = test_directory();
    is_int(config_read(state, &c), -ENOENT, "none");
    test_round(state);
    test_sealed(state);
    test_sealed_hole();
    test_damaged(state);
    test_others(state);
    return done_testing();
}
