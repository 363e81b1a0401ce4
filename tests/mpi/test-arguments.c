/* The arguments of dealfs-courier: each of them, and lines that are refused. */
#include "mpi/arguments.h"

#include "fs/base/log.h"
#include "fs/wire/node.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 40 };

/* Splits the line at spaces. The arguments keep its words until the next call. */
static int parse(const char *line, struct arguments *a)
{
    static char text[1024];
    char *word[WORDS + 1] = {(char *)"dealfs-courier"}, *rest = text;
    int count = 1;
    snprintf(text, sizeof text, "%s", line);
    while (count < WORDS && (word[count] = strsep(&rest, " ")))
        count++;
    word[count] = NULL;
    optind = 0; /* getopt_long starts again */
    return arguments_parse(count, word, a);
}

static void test_all(void)
{
    struct arguments a;
    is_int(parse("--state /s --mountpoint /m", &a), 0, "what is needed");
    is_str(a.state, "/s", "the state");
    is_str(a.mountpoint, "/m", "the mountpoint");
    ok(a.nodes == 0 && a.groups == 0 && a.timeout == 0 && a.resize == 0 && a.quality == 0 && a.uid == 0 && a.gid == 0 &&
           a.lock == -1 && a.mounter == -1 && !a.mount && !a.scan,
       "and nothing else");
    is_int(parse("--state /s --mountpoint /m --nodes 2 --groups 3 --timeout 4 --resize 5 --quality 6 --lock 7 "
                 "--mounter 8 --uid 9 --gid 10 --mount -- dealfs mount /source",
                 &a),
           0, "all of them");
    ok(a.nodes == 2 && a.groups == 3 && a.timeout == 4 && a.resize == 5 && a.quality == 6 && a.lock == 7 &&
           a.mounter == 8 && a.uid == 9 && a.gid == 10 && a.mount && !a.scan,
       "their values");
    is_int(parse("--state /s --mountpoint /m --scan -- dealfs scan", &a), 0, "a command that scans");
    ok(a.scan && !a.mount, "is no mount");
}

static void test_refused(void)
{
    static const char *const line[] = {
        "",
        "--state /s",
        "--mountpoint /m",
        "--state /s --mountpoint /m --unknown 1",
        "--state /s --mountpoint /m --nodes",
        "--state /s --mountpoint /m --nodes two",
        "--state /s --mountpoint /m --nodes 16385",
        "--state /s --mountpoint /m --resize 0 --quality 90",
        "--state /s --mountpoint /m --resize 100",
        "--state /s --mountpoint /m --quality 90",
        "--state /s --mountpoint /m --resize 100 --quality 101",
        "--state /s --mountpoint /m --uid 4294967295",
        "--state /s --mountpoint /m dealfs mount",
        "--state /s --mountpoint /m --mount",
        "--state /s --mountpoint /m --mount -- dealfs",
        "--state /s --mountpoint /m --mount --scan -- dealfs mount",
    };
    struct arguments a;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        is_int(parse(line[i], &a), -EINVAL, "refused: '%s'", line[i]);
}

int main(void)
{
    int log = open(test_path("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_open("test-arguments", log, false);
    is_int(NODES_MOST, 16384, "the number of nodes that this test knows");
    test_all();
    test_refused();
    return done_testing();
}
