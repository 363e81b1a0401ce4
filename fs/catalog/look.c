/* The system calls of a scan, and what their results say about a file. */
#include "fs/base/clock.h"
#include "fs/catalog/crawl.h"

#include <stdlib.h>
#include <string.h>

#define DAY_NS ((int64_t)(86400 * SECOND))

/* `stat=MS` in DEALFS_SOURCE_FAULTS (fs/store/fault.c). */
uint64_t look_delay(void)
{
    static const char word[] = "stat=", space[] = ", \t\n";
    const char *at = getenv("DEALFS_SOURCE_FAULTS");
    for (at = at ? at : ""; *at; at += strcspn(at, space)) {
        at += strspn(at, space);
        if (strncmp(at, word, sizeof word - 1) == 0)
            return strtoull(at + sizeof word - 1, NULL, 10);
    }
    return 0;
}

int look(const struct crawl *c, int fd, const char *name, int flags, struct stat *st, uint32_t *object)
{
    if (c->delay)
        clock_sleep(c->delay * MILLISECOND);
    return state_look(fd, name, flags, st, c->ignores_ctime ? NULL : object);
}

struct file_state look_state(const struct crawl *c, const struct stat *st, uint32_t object)
{
    struct file_state state = state_from(st, object);
    if (c->ignores_ctime)
        state.ctime = 0;
    return state;
}

/* Timestamps are coarse: a file that changed just before the look can change again and look the same. A timestamp with
 * a fraction of a second comes from a clock that advances before the first byte is read; whole seconds may last for
 * two. (An mtime can be set to any time.) */
static bool is_settled(const struct crawl *c, const struct file_state *now)
{
    int64_t time = now->ctime ? now->ctime : now->mtime;
    return time % (int64_t)SECOND != 0 || time < c->scanned - SETTLE_NS || time > c->scanned + DAY_NS;
}

/* `now`: comparable with the previous catalog. */
static int64_t version_of(struct crawl *c, const uint32_t *old, const struct file_state *now)
{
    if (old) {
        struct file_state before = catalog_state(c->old, *old);
        bool same = state_compare(&before, now) <= STATE_EXCUSED && (before.ctime == 0) == (now->ctime == 0);
        if (same && c->old->version[*old] != (int64_t)catalog_scanned(c->old))
            return c->old->version[*old];
        atomic_fetch_add(&c->rewritten, !same);
    }
    /* bytes that are read of an unsettled file get a version that the next scan does not trust: the time of this
     * scan */
    return is_settled(c, now) ? now->ctime : c->scanned;
}

/* --- ACLs --- */

void look_limit(struct crawl *c, int fd, const char *name, struct stat *st)
{
    if (c->acls)
        state_limit_mode(fd, name, st, &c->without_acls);
}

/* The mode with respect to ACLs. A file whose ctime is that of the previous catalog has the mode that is there. */
static mode_t limited_mode(struct crawl *c, int fd, const char *name, const uint32_t *old, uint32_t object,
                           const struct stat *st)
{
    struct stat limited = *st;
    if (old && catalog_notes(c->old)->acls) {
        struct file_state before = catalog_state(c->old, *old);
        bool same = before.ctime == state_time(st->st_ctim);
        if (same && before.ctime < c->settled && before.object == object)
            return S_IFREG | before.mode;
        if (!c->acls && (same || !before.ctime))
            return st->st_mode; /* not compared, see state_compare */
    }
    state_limit_mode(fd, name, &limited, &c->without_acls);
    return limited.st_mode;
}

struct look_result look_judge(struct crawl *c, int fd, const char *name, const uint32_t *old, uint32_t object,
                              struct stat *st)
{
    bool compares = old && catalog_notes(c->old)->acls;
    mode_t limited = c->acls || compares ? limited_mode(c, fd, name, old, object, st) : st->st_mode;
    struct file_state now = look_state(c, st, object), like = now;
    if (compares)
        like.mode = limited & 07777;
    if (c->acls) {
        now.mode = limited & 07777;
        st->st_mode = limited;
    }
    return (struct look_result){now, version_of(c, old, &like)};
}
