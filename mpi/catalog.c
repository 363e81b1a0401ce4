/* Who has the catalog, and its way to the others: a file that is mapped at both ends and broadcast in pieces. */
#include "mpi/catalog.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/catalog/catalog.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ATTACH_PATIENCE UINT64_C(10000000000)

/* The way of the catalog in one join. */
struct spread {
    struct join *join;
    uint32_t leader;
    struct digest digest;
    char path[PATH_MAX]; /* of the file that is given to this node's server, or was scanned into; "": none */
    int fd;              /* of a file of it; -1: none */
};

struct digest catalog_kept(const char *state)
{
    char path[PATH_MAX];
    struct catalog *c;
    struct digest digest = {{0}};
    int n = snprintf(path, sizeof path, "%s/catalog", state);
    if (n >= (int)sizeof path || catalog_open(path, &c))
        return digest;
    digest = *catalog_digest(c);
    catalog_close(c);
    return digest;
}

static bool same(const struct digest *a, const struct digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static const char *my_name(const struct join *j)
{
    return j->nodes->count > 1 ? agree_name(j->nodes, j->nodes->me) : "";
}

static int say(struct str *why, const char *what, const char *on, int error)
{
    str_addf(why, "%s ", what);
    str_add_printable(why, on, strlen(on));
    str_addf(why, ": %s", strerror(-error));
    return error;
}

/* --- who has it --- */

static int compare_live(const struct join *j, uint32_t first)
{
    char a[DIGEST_TEXT], b[DIGEST_TEXT];
    for (uint32_t i = first + 1; i < j->nodes->count; i++) {
        const struct wire_member *m = &j->member[i];
        if (m->state != MEMBER_LIVE || same(&m->catalog, &j->member[first].catalog))
            continue;
        return agree_refuse(j->nodes,
                            "%s: its catalog (%.8s) is not that of %s (%.8s): another source, or another state of it; "
                            "unmount one of them",
                            agree_name(j->nodes, i), digest_format(&m->catalog, b), agree_name(j->nodes, first),
                            digest_format(&j->member[first].catalog, a));
    }
    return 0;
}

static uint32_t first_that(const struct join *j, enum member_state state, bool scans)
{
    uint32_t i = 0;
    while (i < j->nodes->count && (j->member[i].state != state || (scans && !j->member[i].scans)))
        i++;
    return i;
}

static int choose_leader(struct spread *s)
{
    struct join *j = s->join;
    s->leader = first_that(j, MEMBER_LIVE, false);
    if (s->leader < j->nodes->count)
        return compare_live(j, s->leader);
    s->leader = first_that(j, MEMBER_UNMOUNTED, false);
    if (s->leader == j->nodes->count)
        s->leader = first_that(j, MEMBER_WAITING, true);
    if (s->leader < j->nodes->count)
        return 0;
    return agree_refuse(j->nodes, "all mounts wait for a catalog, and no node was told how to scan the source");
}

/* --- the leader has it, or makes it --- */

static int attach(struct join *j, struct str *why)
{
    int error = link_open(j->link, ATTACH_PATIENCE, why);
    if (!error && j->link->welcome.waiting) {
        str_adds(why, "it was mounted, and yet waits for a catalog");
        return -EPROTO;
    }
    return error;
}

/* Both ends of its way check it: the file as a whole, and that it is the one. */
static int check_file(const char *path, struct digest *digest, struct str *why)
{
    struct catalog *c;
    int error = catalog_open(path, &c);
    if (error)
        return say(why, "open the catalog", path, error);
    *digest = *catalog_digest(c);
    catalog_close(c);
    return 0;
}

static int joined_path(struct spread *s, struct str *why)
{
    int n = snprintf(s->path, sizeof s->path, "%s/catalog.joined", s->join->options->state);
    if (n < (int)sizeof s->path)
        return 0;
    s->path[0] = '\0';
    return say(why, "a file in", s->join->options->state, -ENAMETOOLONG);
}

static int lead_mount(struct spread *s, struct str *why)
{
    struct join *j = s->join;
    int error = helper_mount(j->helper, my_name(j), -1, why);
    if (!error)
        error = attach(j, why);
    if (!error)
        s->digest = j->link->welcome.catalog;
    return error;
}

static int lead_scan(struct spread *s, struct str *why)
{
    int error = joined_path(s, why);
    if (!error)
        error = helper_scan(s->join->helper, my_name(s->join), s->path, why);
    return error ? error : check_file(s->path, &s->digest, why);
}

static int lead(struct spread *s, struct str *why)
{
    switch (s->join->mine.state) {
    case MEMBER_UNMOUNTED:
        return lead_mount(s, why);
    case MEMBER_WAITING:
        return lead_scan(s, why);
    default:
        s->digest = s->join->mine.catalog;
        return 0;
    }
}

/* --- its way --- */

static bool needs(const struct spread *s, uint32_t node)
{
    const struct wire_member *m = &s->join->member[node];
    return node != s->leader && m->state != MEMBER_LIVE &&
           (m->state == MEMBER_WAITING || !same(&m->catalog, &s->digest));
}

static int open_leaders(struct spread *s, uint64_t *size, struct str *why)
{
    char path[PATH_MAX];
    struct stat st;
    struct digest digest;
    const char *from = s->path;
    if (!s->path[0]) {
        int n = snprintf(path, sizeof path, "%s/catalog", s->join->options->state);
        if (n >= (int)sizeof path)
            return say(why, "a file in", s->join->options->state, -ENAMETOOLONG);
        from = path;
    }
    s->fd = open(from, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) < 0)
        return say(why, "open the catalog", from, -errno);
    int error = check_file(from, &digest, why);
    if (!error && !same(&digest, &s->digest)) {
        str_adds(why, "its state directory has another catalog than its server");
        return -ESTALE;
    }
    *size = (uint64_t)st.st_size;
    return error;
}

/* A node without a mount has perhaps no state directory yet; then the file has no name either, and is passed on by its
 * descriptor. */
static int temporary(const struct options *o)
{
    const char *tmp = getenv("TMPDIR");
    const char *slash = strrchr(o->state, '/');
    CLEANUP_STR struct str path = STR_INIT;
    for (int i = 0; i < 3; i++) {
        str_clear(&path);
        if (i == 0 && slash && slash > o->state)
            str_add(&path, o->state, (size_t)(slash - o->state));
        else
            str_adds(&path, i == 1 && tmp && *tmp == '/' ? tmp : "/var/tmp");
        str_adds(&path, "/.dealfs-catalog.XXXXXX");
        int fd = path.failed ? -1 : mkostemp(path.data, O_CLOEXEC);
        if (fd >= 0) {
            unlink(path.data);
            return fd;
        }
    }
    return -errno;
}

static int make_file(struct spread *s, uint64_t size, struct str *why)
{
    int error = 0;
    if (s->join->mine.state == MEMBER_WAITING) {
        error = joined_path(s, why);
        if (error)
            return error;
        unlink(s->path);
        s->fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        error = s->fd < 0 ? -errno : 0;
    } else {
        s->fd = temporary(s->join->options);
        error = s->fd < 0 ? s->fd : 0;
    }
    if (error)
        return say(why, "make a file for the catalog beside", s->join->options->state, error);
    error = -posix_fallocate(s->fd, 0, (off_t)size); /* a full disk is told here, and not by a signal */
    return error ? say(why, "make room for the catalog beside", s->join->options->state, error) : 0;
}

static int map_file(const struct spread *s, uint64_t size, bool ours, void **bytes, struct str *why)
{
    *bytes = mmap(NULL, size, ours ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    return *bytes == MAP_FAILED ? say(why, "map", "the catalog", -errno) : 0;
}

static int check_received(const struct spread *s, struct str *why)
{
    char path[64];
    struct digest digest;
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
    int error = check_file(path, &digest, why);
    if (!error && !same(&digest, &s->digest)) {
        str_adds(why, "the catalog was received damaged");
        return -EBADMSG;
    }
    return error;
}

static int transfer(struct spread *s)
{
    const struct nodes *nodes = s->join->nodes;
    CLEANUP_STR struct str why = STR_INIT;
    bool leads = nodes->me == s->leader, wants = needs(s, nodes->me);
    uint64_t size = 0;
    void *bytes = NULL;
    int error = agree_on(nodes, leads ? open_leaders(s, &size, &why) : 0, &why);
    if (!error)
        error = agree_share(nodes, s->leader, &size, sizeof size);
    if (error)
        return error;
    int mine = wants ? make_file(s, size, &why) : 0;
    if (!mine && (wants || leads))
        mine = map_file(s, size, leads, &bytes, &why);
    error = agree_on(nodes, mine, &why);
    if (!error)
        error = agree_share_some(nodes, s->leader, wants, bytes, size);
    if (bytes && bytes != MAP_FAILED)
        munmap(bytes, size);
    return error;
}

/* --- where it ends --- */

static int use_kept(struct spread *s, struct str *why)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/catalog", s->join->options->state);
    s->fd = path.failed ? -1 : open(path.data, O_RDONLY | O_CLOEXEC);
    return s->fd < 0 ? say(why, "open the kept catalog in", s->join->options->state, -errno) : 0;
}

static int settle_here(struct spread *s, struct str *why)
{
    struct join *j = s->join;
    bool leads = j->nodes->me == s->leader;
    int error = 0;
    if (needs(s, j->nodes->me))
        error = check_received(s, why);
    else if (j->mine.state == MEMBER_UNMOUNTED && !leads)
        error = use_kept(s, why);
    if (error)
        return error;
    if (j->mine.state == MEMBER_WAITING)
        return link_give_catalog(j->link, s->path, why);
    if (j->mine.state == MEMBER_UNMOUNTED && !leads)
        error = helper_mount(j->helper, my_name(j), s->fd, why);
    return error || j->link->socket >= 0 ? error : attach(j, why);
}

static int spread(struct spread *s)
{
    struct join *j = s->join;
    CLEANUP_STR struct str why = STR_INIT;
    bool leads = j->nodes->me == s->leader, any = false;
    int error = agree_on(j->nodes, leads ? lead(s, &why) : 0, &why);
    if (!error)
        error = agree_share(j->nodes, s->leader, &s->digest, sizeof s->digest);
    for (uint32_t i = 0; i < j->nodes->count; i++)
        any |= needs(s, i);
    if (!error && any)
        error = transfer(s);
    if (error)
        return error;
    int mine = settle_here(s, &why);
    return agree_on(j->nodes, mine, &why);
}

int catalog_settle(struct join *j)
{
    struct spread s = {.join = j, .fd = -1};
    int error = choose_leader(&s);
    if (!error)
        error = spread(&s);
    if (s.fd >= 0)
        close(s.fd);
    if (s.path[0])
        unlink(s.path); /* a server that wanted it has it by now */
    return error;
}
