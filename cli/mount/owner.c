/* Users by name or number, and root's work in their name. */
#include "cli/mount/owner.h"

#include "fs/base/cleanup.h"
#include "fs/base/size.h"

#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>

static int refuse_owner(struct str *why, const char *given, const char *reason)
{
    str_adds(why, "option owner=");
    str_add_printable(why, given, strlen(given));
    str_addf(why, ": %s", reason);
    return -EINVAL;
}

static int owner_set(struct owner *owner, const struct passwd *entry, uid_t uid, gid_t gid)
{
    char number[16];

    snprintf(number, sizeof number, "%u", (unsigned)uid);
    *owner = (struct owner){.uid = uid, .gid = gid, .name = strdup(entry ? entry->pw_name : number)};
    owner->another = uid != geteuid();
    return owner->name ? 0 : -ENOMEM;
}

int owner_find(const char *given, struct owner *owner, struct str *why)
{
    struct passwd *entry;
    uint64_t number;

    if (!given)
        return owner_set(owner, getpwuid(geteuid()), geteuid(), getegid());
    if (geteuid() != 0)
        return refuse_owner(why, given, "only root can mount for another user");
    entry = getpwnam(given);
    if (!entry && number_parse(given, 0, UINT32_MAX - 1, &number) == 0) {
        entry = getpwuid((uid_t)number);
        if (!entry)
            return owner_set(owner, NULL, (uid_t)number, (gid_t)number);
    }
    if (!entry)
        return refuse_owner(why, given, "there is no such user");
    return owner_set(owner, entry, entry->pw_uid, entry->pw_gid);
}

void owner_fini(struct owner *owner)
{
    free(owner->name);
    *owner = (struct owner){0};
}

/* Root's own groups are not asked for again: this is a command that root started, and it has them from there. */
static gid_t *groups_before;
static int groups_before_count;

static int keep_groups(void)
{
    int n = getgroups(0, NULL);

    free(groups_before);
    groups_before = calloc((size_t)(n > 0 ? n : 1), sizeof *groups_before);
    if (!groups_before)
        return -ENOMEM;
    groups_before_count = n > 0 ? getgroups(n, groups_before) : 0;
    return groups_before_count < 0 ? -errno : 0;
}

int owner_assume(const struct owner *owner, struct str *why)
{
    if (!owner->another)
        return 0;
    int error = keep_groups();
    if (!error && (initgroups(owner->name, owner->gid) < 0 || setegid(owner->gid) < 0 || seteuid(owner->uid) < 0)) {
        error = -errno;
        owner_leave(owner);
    }
    if (error)
        str_addf(why, "act as user %s: %s", owner->name, strerror(-error));
    return error;
}

int owner_become(uid_t uid, struct owner *owner, struct str *why)
{
    char number[16];

    snprintf(number, sizeof number, "%u", (unsigned)uid);
    int error = owner_find(geteuid() == 0 ? number : NULL, owner, why);
    return error ? error : owner_assume(owner, why);
}

/* A command that went on with half of another user's rights would be worse than none. */
void owner_leave(const struct owner *owner)
{
    if (!owner->another)
        return;
    if (seteuid(0) < 0 || setegid(getgid()) < 0 || setgroups((size_t)groups_before_count, groups_before) < 0)
        abort();
}
