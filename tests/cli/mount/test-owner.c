/* cli/mount/owner.h: users by name and by number, where the number of one user is the name of another one. */
#include "cli/mount/owner.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* In the place of the library's. */
struct passwd *getpwnam(const char *name)
{
    static struct passwd numbered = {.pw_name = (char *)"65534", .pw_uid = 33, .pw_gid = 34};
    return strcmp(name, numbered.pw_name) == 0 ? &numbered : NULL;
}

struct passwd *getpwuid(uid_t uid)
{
    static struct passwd somebody = {.pw_name = (char *)"somebody", .pw_uid = 65534, .pw_gid = 65533};
    return uid == somebody.pw_uid ? &somebody : NULL;
}

static void test_given(const char *given, uid_t uid, gid_t gid, const char *name)
{
    struct owner owner = {0};
    struct str why = STR_INIT;
    is_int(owner_find(given, &owner, &why), 0, "owner=%s", given);
    ok(owner.uid == uid && owner.gid == gid, "is user %u with group %u", (unsigned)uid, (unsigned)gid);
    is_str(owner.name, name, "whose name is %s", name);
    owner_fini(&owner);
    str_fini(&why);
}

static void test_refused(const char *given)
{
    struct owner owner = {0};
    struct str why = STR_INIT;
    is_int(owner_find(given, &owner, &why), -EINVAL, "there is no user %s", given);
    str_fini(&why);
}

int main(void)
{
    struct owner owner;
    if (geteuid() != 0)
        plan_skip_all("only root may name another user");
    test_given("65534", 33, 34, "65534");
    test_given("+65534", 65534, 65533, "somebody");
    test_given("12345", 12345, 12345, "12345");
    test_given("+12345", 12345, 12345, "12345");
    test_refused("+");
    test_refused("++1");
    test_refused("+somebody");
    is_int(owner_of_uid(65534, &owner), 0, "a user by number");
    ok(owner.uid == 65534 && owner.gid == 65533, "is never the one with that name");
    owner_fini(&owner);
    return done_testing();
}
