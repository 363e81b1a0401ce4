/* fs/attach/network.c, and the table of mounts that it looks into */
#include "fs/attach/attach.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void test_network(void)
{
    is_int(attach_on_network(test_path("none")), -ENOENT, "a missing path");
    is_int(attach_on_network("/proc"), 0, "/proc is local");
    is_int(attach_on_network("/dev"), 0, "/dev is local");
}

struct seen {
    struct attach_mount_info proc;
    int of_type, others;
};

static int see(void *user, const char *path, const struct attach_mount_info *info)
{
    struct seen *seen = user;
    if (strcmp(info->type, "proc") == 0)
        seen->of_type++;
    else
        seen->others++;
    return strcmp(path, "/proc") == 0 && info->minor == seen->proc.minor ? 7 : 0;
}

static void test_table(void)
{
    struct seen seen = {0};
    is_int(attach_find(test_path("none"), &seen.proc), -ENOENT, "nothing is mounted there");
    is_int(attach_find("/proc", &seen.proc), 0, "/proc is mounted");
    is_str(seen.proc.type, "proc", "of its type");
    is_int(attach_each("proc", see, &seen), 7, "one of that type is it, and ends the search");
    ok(seen.of_type > 0 && seen.others == 0, "and no other type was seen");
    is_int(attach_each("no such type", see, &seen), 0, "of a type that there is not nothing is seen");
    free(seen.proc.source);
}

int main(void)
{
    test_network();
    test_table();
    return done_testing();
}
