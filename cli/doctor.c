/* `dealfs doctor`: can this machine run dealfs? One line per check, and what to do about problems.
 *
 * Each check is a function of the table below. Checks that change the process (a new namespace, another kind of mount)
 * run in a child. */
#include "cli/base/options.h"

#include "cli/live/live.h"
#include "cli/mount/checks.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_words[] = {
    [CHECK_OK] = "ok",
    [CHECK_NOTE] = "note",
    [CHECK_WARNING] = "warning",
    [CHECK_PROBLEM] = "problem",
};
static const char *const level_colours[] = {
    [CHECK_OK] = "\033[32m",
    [CHECK_NOTE] = "",
    [CHECK_WARNING] = "\033[33m",
    [CHECK_PROBLEM] = "\033[31m",
};

/* Returns 1 for a problem. */
static int finding_report(struct finding *finding)
{
    bool colours = isatty(STDOUT_FILENO) == 1;
    printf("%s%-8s%s %s\n", colours ? level_colours[finding->level] : "", level_words[finding->level],
           colours ? "\033[0m" : "", finding->text.failed ? "out of memory" : finding->text.data);
    if (finding->level > CHECK_NOTE && finding->advice)
        printf("         to do: %s\n", finding->advice);
    str_fini(&finding->text);
    return finding->level == CHECK_PROBLEM;
}

/* Dead mounts are reported here, because nothing else reports them. */
static int look_at_mount(void *user, const struct live *live)
{
    struct finding finding = {.level = CHECK_PROBLEM};
    int *problems = user;
    if (live->health < LIVE_UNKNOWN)
        return 0;
    str_adds(&finding.text, "the mount ");
    str_add_printable(&finding.text, live->mountpoint, strlen(live->mountpoint));
    str_addf(&finding.text, ": %s", live_health_text(live->health));
    finding.advice = live->health == LIVE_DEAD   ? "mount it again, which reuses its cache, or run `dealfs clean`"
                     : live->health == LIVE_HUNG ? "`dealfs umount` it"
                                                 : "read `dealfs log`";
    *problems += finding_report(&finding);
    return 0;
}

static int doctor_examine(const char *ssd)
{
    int problems = 0;
    for (machine_check *const *one = checks; *one; one++) {
        struct finding finding = {.level = CHECK_OK};
        (*one)(&finding);
        problems += finding_report(&finding);
    }
    if (ssd) {
        struct finding finding = {.level = CHECK_OK};
        check_ssd(ssd, &finding);
        problems += finding_report(&finding);
    }
    live_each(look_at_mount, &problems);
    if (problems == 0)
        return COMMAND_DONE;
    return command_fail("this machine has %d problem%s", problems, problems == 1 ? "" : "s");
}

static int doctor_command(int argc, char **argv)
{
    int status = command_options(&command_doctor, NULL, argc, argv);
    if (status)
        return status;
    if (argc - optind > 1)
        return command_usage(&command_doctor, "more than one SSD-DIRECTORY");
    return doctor_examine(argv[optind]);
}

const struct command command_doctor = {
    .name = "doctor",
    .arguments = "[SSD-DIRECTORY]",
    .summary = "check whether this machine can run dealfs",
    .help = "SSD-DIRECTORY is also checked, as a place for the SSD tier.\n"
            "The exit status is 1 when there is a problem.\n",
    .run = doctor_command,
};
