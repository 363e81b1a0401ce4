/* Finds users by name or number. */
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
    return str_fail(why, -EINVAL, ": %s", reason);
}

static int owner_set(struct owner *owner, const struct passwd *entry, uid_t uid, gid_t gid)
{
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)uid);
    *owner = (struct owner){.uid = uid, .gid = gid, .name = strdup(entry ? entry->pw_name : number)};
    owner->another = uid != geteuid();
    return owner->name ? 0 : -ENOMEM;
}

int owner_of_uid(uid_t uid, struct owner *owner)
{
    const struct passwd *entry = getpwuid(uid);
    return owner_set(owner, entry, uid, entry ? entry->pw_gid : (gid_t)uid);
}

int owner_find(const char *given, struct owner *owner, struct str *why)
{
    struct passwd *entry;
    uint64_t number;
    if (!given)
        return owner_set(owner, getpwuid(geteuid()), geteuid(), getegid());
    bool numeric = given[0] == '+';
    entry = numeric ? NULL : getpwnam(given);
    if (!entry && number_parse(given + numeric, 0, UINT32_MAX - 1, &number) == 0) {
        entry = getpwuid((uid_t)number);
        if (!entry && geteuid() == 0)
            return owner_set(owner, NULL, (uid_t)number, (gid_t)number);
        if (!entry && number == geteuid())
            return owner_set(owner, NULL, geteuid(), getegid());
    }
    if (geteuid() != 0 && (!entry || entry->pw_uid != geteuid()))
        return refuse_owner(why, given, "only root can mount for another user");
    if (!entry)
        return refuse_owner(why, given, "there is no such user");
    return owner_set(owner, entry, entry->pw_uid, entry->pw_gid);
}

void owner_fini(struct owner *owner)
{
    free(owner->name);
    *owner = (struct owner){0};
}
