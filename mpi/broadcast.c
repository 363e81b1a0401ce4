/* The leader is the node that has the catalog or scans for it. Sender and receivers map the file; it is broadcast in
 * pieces.
 *
 * Catalogs are compared by the digest of their files' versions, which includes that of the dataset. */
#include "mpi/broadcast.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/catalog.h"
#include "fs/catalog/derived.h"
#include "mpi/ask.h"
#include "mpi/images.h"
#include "mpi/looks.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The state of one broadcast. */
struct broadcast {
    const struct members *members;
    const struct nodes *nodes;
    struct courier_helper *helper;
    uint32_t leader;
    struct offer { /* what the leader offers */
        struct digest versions;
        uint64_t size; /* size of the file; 0: nobody needs it */
    } offer;
    char path[PATH_MAX]; /* the file for this node's server, or into which it scanned; "": none */
    int fd;              /* of the file; -1: none */
    int looked;          /* file with the results of all nodes' looks, for the node that scans; -1: none */
    struct images images;
};

static enum member_state my_state(const struct broadcast *b)
{
    return members_mine(b->members)->state;
}

static bool is_leader(const struct broadcast *b)
{
    return b->nodes->me == b->leader;
}

static bool with_resize(const struct broadcast *b)
{
    return members_mine(b->members)->resize > 0;
}

/* Will images be resized now? Otherwise a live mount already has the result. */
static bool makes_images(const struct broadcast *b)
{
    return with_resize(b) && b->members->member[b->leader].state != MEMBER_LIVE;
}

/* Does the leader offer a derived catalog, together with the source's? */
static bool offers_made(const struct broadcast *b)
{
    return with_resize(b) && !makes_images(b);
}

/* The version digest counts: a cached catalog may be older than a file that was rewritten with its mtime restored. */
static bool needs_catalog(const struct broadcast *b, uint32_t node)
{
    const struct wire_member *m = &b->members->member[node];
    if (offers_made(b))
        return m->state != MEMBER_LIVE;
    return node != b->leader && (m->state == MEMBER_WAITING ||
                                 (m->state == MEMBER_UNMOUNTED && !digest_equal(&m->versions, &b->offer.versions)));
}

static bool anybody_needs_it(const struct broadcast *b)
{
    for (uint32_t i = 0; i < b->nodes->count; i++)
        if (needs_catalog(b, i))
            return true;
    return false;
}

static int fail_on(struct str *why, const char *what, const char *on, int error)
{
    str_addf(why, "%s ", what);
    str_add_printable(why, on, strlen(on));
    return str_fail(why, error, ": %s", strerror(-error));
}

/* --- nodes that have a catalog --- */

/* Two nodes scanned the source separately. If a file was rewritten in between with its mtime restored, their cached
 * data of that file differ. */
static int refuse_versions(const struct nodes *nodes, uint32_t first, uint32_t other)
{
    return agree_refuse(nodes,
                        "%s: it has other versions of some files than %s: mount one of them again with rescan=always "
                        "(or all with identity=mtime, if the source's ctimes change although the content does not)",
                        agree_name(nodes, other), agree_name(nodes, first));
}

static int compare_live(const struct broadcast *b)
{
    const struct wire_member *first = &b->members->member[b->leader];
    char ours[DIGEST_TEXT], its[DIGEST_TEXT];
    for (uint32_t i = b->leader + 1; i < b->nodes->count; i++) {
        const struct wire_member *m = &b->members->member[i];
        if (m->state != MEMBER_LIVE)
            continue;
        if (!digest_equal(&m->catalog, &first->catalog))
            return agree_refuse(b->nodes,
                                "%s: its catalog (%.8s) differs from that of %s (%.8s): another source, another state "
                                "of it, or ACLs and allow_other on one of them only: unmount one of them",
                                agree_name(b->nodes, i), digest_format(&m->catalog, its),
                                agree_name(b->nodes, b->leader), digest_format(&first->catalog, ours));
        if (!digest_equal(&m->versions, &first->versions))
            return refuse_versions(b->nodes, b->leader, i);
    }
    return 0;
}

static uint32_t first_that(const struct broadcast *b, enum member_state state, bool scans)
{
    uint32_t i = 0;
    while (i < b->nodes->count && (b->members->member[i].state != state || (scans && !b->members->member[i].scans)))
        i++;
    return i;
}

static int choose_leader(struct broadcast *b)
{
    b->leader = first_that(b, MEMBER_LIVE, false);
    if (b->leader < b->nodes->count)
        return compare_live(b);
    b->leader = first_that(b, MEMBER_UNMOUNTED, false);
    if (b->leader == b->nodes->count)
        b->leader = first_that(b, MEMBER_WAITING, true);
    if (b->leader < b->nodes->count)
        return 0;
    return agree_refuse(b->nodes, "all mounts wait for a catalog, and no node knows how to scan the source");
}

/* --- the leader gets its catalog --- */

static int greet_mounted(const struct broadcast *b, struct str *why)
{
    struct home *home = b->members->home;
    int error = ask_hello(home, why);
    if (!error && home->welcome.waiting)
        return str_fail(why, -EPROTO, "it is mounted, but still waits for a catalog");
    return error;
}

/* The path of NAME in the state directory. */
static int state_path(const struct broadcast *b, const char *name, char path[PATH_MAX], struct str *why)
{
    const char *state = b->members->arguments->state;
    int n = snprintf(path, PATH_MAX, "%s/%s", state, name);
    if (n < PATH_MAX)
        return 0;
    path[0] = '\0';
    return fail_on(why, "a file in", state, -ENAMETOOLONG);
}

static int open_made(const char *path, struct catalog **catalog, void **bytes)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct derived *d;
    size_t length;
    int error = fd < 0 ? -errno : derived_open(fd, &d);
    if (error)
        return error;
    error = derived_catalog(d, bytes, &length);
    derived_close(d);
    return error ? error : catalog_open_memory(*bytes, length, catalog);
}

/* Sender and receiver check the file: that it is complete, and the right one. */
static int read_versions(const struct broadcast *b, const char *path, struct digest *versions, struct str *why)
{
    CLEANUP_FREE void *bytes = NULL;
    struct catalog *c;
    int error = offers_made(b) ? open_made(path, &c, &bytes) : catalog_open(path, &c);
    if (error)
        return fail_on(why, "open the catalog", path, error);
    *versions = *catalog_versions(c);
    catalog_close(c);
    return 0;
}

/* `catalog` -1: the mount scans. Returns when this node's resizer knows the catalog. */
static int begin_mount(struct broadcast *b, int catalog, int looked, struct str *why)
{
    CLEANUP_CLOSE int theirs = images_open(&b->images);
    if (theirs < 0)
        return fail_on(why, "make a socket for", "dealfs-resizer", theirs);
    int error = helper_begin_mount(b->helper, catalog, looked, theirs, why);
    close(steal_fd(theirs));
    return error ? error : images_hear(&b->images, why);
}

static int begin_waiting(struct broadcast *b, struct str *why)
{
    CLEANUP_CLOSE int theirs = images_open(&b->images);
    if (theirs < 0)
        return fail_on(why, "make a socket for", "dealfs-resizer", theirs);
    int error = ask_resize(b->members->home, b->path, theirs, why);
    close(steal_fd(theirs));
    return error ? error : images_hear(&b->images, why);
}

static int make_offer(struct broadcast *b, struct str *why)
{
    int error = 0;
    if (my_state(b) == MEMBER_WAITING) {
        error = state_path(b, "catalog.joined", b->path, why);
        if (!error)
            error = helper_scan(b->helper, b->path, why);
        return error ? error : read_versions(b, b->path, &b->offer.versions, why);
    }
    if (makes_images(b)) {
        error = begin_mount(b, -1, b->looked, why);
        b->offer.versions = b->images.mine.catalog;
        return error;
    }
    if (my_state(b) == MEMBER_UNMOUNTED) {
        error = helper_mount(b->helper, -1, b->looked, why);
        if (!error)
            error = greet_mounted(b, why);
    }
    b->offer.versions = b->members->home->welcome.versions;
    return error;
}

static int open_offered(struct broadcast *b, struct str *why)
{
    char path[PATH_MAX];
    struct stat st;
    struct digest versions;
    const char *from = b->path[0] ? b->path : path;
    int error = state_path(b, offers_made(b) ? "resized" : "catalog", path, why);
    if (error)
        return error;
    b->fd = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (b->fd < 0 || fstat(b->fd, &st) < 0)
        return fail_on(why, "open the catalog", from, -errno);
    b->offer.size = (uint64_t)st.st_size;
    error = read_versions(b, from, &versions, why);
    if (!error && !digest_equal(&versions, &b->offer.versions))
        return str_fail(why, -ESTALE, "its state directory contains another catalog than its server uses");
    return error;
}

static int share_offer(struct broadcast *b)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = is_leader(b) ? make_offer(b, &why) : 0;
    if (!error && is_leader(b) && anybody_needs_it(b))
        error = open_offered(b, &why);
    error = agree_on(b->nodes, error, &why);
    return error ? error : agree_share(b->nodes, b->leader, &b->offer, sizeof b->offer);
}

/* --- sending --- */

/* A node without a mount may have no state directory yet: then the file has no name, and is passed on by descriptor. */
static int open_temporary(const char *state)
{
    const char *tmp = getenv("TMPDIR");
    const char *slash = strrchr(state, '/');
    CLEANUP_STR struct str path = STR_INIT;
    for (int i = 0; i < 3; i++) {
        str_clear(&path);
        if (i == 0 && slash && slash > state)
            str_add(&path, state, (size_t)(slash - state));
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

static int make_file(struct broadcast *b, struct str *why)
{
    const char *state = b->members->arguments->state;
    if (my_state(b) == MEMBER_WAITING) {
        int error = state_path(b, "catalog.joined", b->path, why);
        if (error)
            return error;
        unlink(b->path);
        b->fd = open(b->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (b->fd < 0)
            return fail_on(why, "make", b->path, -errno);
    } else {
        b->fd = open_temporary(state);
    }
    if (b->fd < 0)
        return fail_on(why, "make a file for the catalog beside", state, -errno);
    /* so that a full disk is an error here, not a signal later */
    int error = -posix_fallocate(b->fd, 0, (off_t)b->offer.size);
    return error ? fail_on(why, "make room for the catalog beside", state, error) : 0;
}

static int transfer_file(struct broadcast *b)
{
    CLEANUP_STR struct str why = STR_INIT;
    bool wants = needs_catalog(b, b->nodes->me);
    void *bytes = MAP_FAILED;
    int error = wants ? make_file(b, &why) : 0;
    if (!error && (wants || is_leader(b))) {
        bytes = mmap(NULL, b->offer.size, is_leader(b) ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
        error = bytes == MAP_FAILED ? fail_on(&why, "map", "the catalog", -errno) : 0;
    }
    error = agree_on(b->nodes, error, &why);
    if (!error)
        error = agree_share_some(b->nodes, b->leader, wants, bytes, b->offer.size);
    if (bytes != MAP_FAILED)
        munmap(bytes, b->offer.size);
    return error;
}

/* --- receiving --- */

static int check_received(const struct broadcast *b, struct str *why)
{
    char path[64];
    struct digest versions;
    snprintf(path, sizeof path, "/proc/self/fd/%d", b->fd);
    int error = read_versions(b, path, &versions, why);
    if (!error && !digest_equal(&versions, &b->offer.versions))
        return str_fail(why, -EBADMSG, "the catalog arrived damaged");
    return error;
}

static int use_kept(struct broadcast *b, struct str *why)
{
    char path[PATH_MAX];
    int error = state_path(b, "catalog", path, why);
    if (error)
        return error;
    b->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return b->fd < 0 ? fail_on(why, "open the saved catalog", path, -errno) : 0;
}

static int take_offer(struct broadcast *b, struct str *why)
{
    bool mounts = my_state(b) == MEMBER_UNMOUNTED && !is_leader(b);
    int error = 0;
    if (needs_catalog(b, b->nodes->me))
        error = check_received(b, why);
    else if (mounts)
        error = use_kept(b, why);
    if (error)
        return error;
    if (my_state(b) == MEMBER_WAITING)
        return makes_images(b) ? begin_waiting(b, why) : ask_take_catalog(b->members->home, b->path, why);
    if (!mounts)
        return 0;
    if (makes_images(b))
        return begin_mount(b, b->fd, -1, why);
    error = helper_mount(b->helper, b->fd, -1, why);
    return error ? error : greet_mounted(b, why);
}

/* --- with resize= --- */

static int take_made(struct broadcast *b, struct str *why)
{
    char path[PATH_MAX];
    int error;
    if (b->helper->begun) {
        error = helper_end_mount(b->helper, why);
        return error ? error : greet_mounted(b, why);
    }
    images_await(&b->images);
    error = state_path(b, "resized", path, why);
    return error ? error : ask_take_catalog(b->members->home, path, why);
}

static int make_images(struct broadcast *b)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = images_together(&b->images);
    if (error)
        return error;
    error = take_made(b, &why);
    return agree_on(b->nodes, error, &why);
}

static int broadcast_steps(struct broadcast *b)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = choose_leader(b);
    if (!error)
        error = looks_share(b->members, b->helper, b->leader, &b->looked);
    if (!error)
        error = share_offer(b);
    if (!error && anybody_needs_it(b))
        error = transfer_file(b);
    if (error)
        return error;
    error = take_offer(b, &why);
    error = agree_on(b->nodes, error, &why);
    return error || !makes_images(b) ? error : make_images(b);
}

int broadcast_catalog(const struct members *members, struct courier_helper *helper)
{
    struct broadcast b = {.members = members, .nodes = members->nodes, .helper = helper, .fd = -1, .looked = -1};
    images_init(&b.images, members, helper);
    int error = broadcast_steps(&b);
    images_end(&b.images);
    if (b.fd >= 0)
        close(b.fd);
    if (b.looked >= 0)
        close(b.looked);
    if (b.path[0]) /* a server that needs the file has it open by now */
        unlink(b.path);
    return error;
}
