/* cli/checks: what is read from files, and that every check says something. */
#include "cli/mount/checks.h"
#include "tests/lib/tap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_prunefs(void)
{
    static const struct {
        const char *conf;
        bool names;
    } table[] = {
        {"", false},
        {"PRUNEFS=\"NFS fuse.dealfs proc\"\n", true},
        {"PRUNEFS=\"NFS FUSE.DEALFS\"", true},
        {"PRUNE_BIND_MOUNTS=\"yes\"\n  PRUNEFS = \"fuse.dealfs\"\n", true},
        {"# PRUNEFS=\"fuse.dealfs\"\n", false},
        {"PRUNEFS=\"fuse fuse.dealfs-ctl fuse.deal\"\n", false},
        {"PRUNEPATHS=\"/tmp fuse.dealfs\"\nPRUNEFS=\"proc\"\n", false},
        {"PRUNEFS=\"proc", false},
        {"PRUNEFS=", false},
        {"PRUNEFS", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        is_int(prunefs_names(table[i].conf, "fuse.dealfs"), table[i].names, "PRUNEFS, case %zu", i);
}

static void examine(struct finding *finding, enum check_level worst)
{
    ok(finding->text.length > 0, "a check says: %s", finding->text.length > 0 ? finding->text.data : "nothing");
    ok(finding->level <= CHECK_NOTE || (finding->advice && *finding->advice),
       "and what to do where something is wrong");
    ok(finding->level <= worst, "its level is %d", (int)finding->level);
    str_fini(&finding->text);
}

static void test_ssd_refused(const char *directory)
{
    struct finding finding = {0};
    check_ssd(directory, &finding);
    is_int(finding.level, CHECK_PROBLEM, "as an SSD directory it is a problem: %s", directory);
    str_fini(&finding.text);
}

static void write_limit(const char *name, const char *text)
{
    unlink(test_path("%s", name));
    FILE *f = text ? fopen(test_path("%s", name), "w") : NULL;
    if (text && (!f || fputs(text, f) < 0 || fclose(f) != 0))
        bail_out("write %s", name);
}

static void test_inotify(void)
{
    static const struct {
        const char *watches, *events;
        enum check_level level;
        const char *says;
    } table[] = {
        {"8192\n", "16384\n", CHECK_OK, "8192 directories and queue 16384 events"},
        {"8191\n", "16384\n", CHECK_WARNING, "max_user_watches is 8191:"},
        {"8192\n", "16\n", CHECK_WARNING, "max_queued_events is 16:"},
        {"1\n", "16\n", CHECK_WARNING, "max_user_watches is 1:"},
        {"many\n", "16384\n", CHECK_NOTE, "Invalid argument"},
        {"8192\n", "", CHECK_NOTE, "Invalid argument"},
        {NULL, "16384\n", CHECK_NOTE, "No such file"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct finding finding = {0};
        write_limit("max_user_watches", table[i].watches);
        write_limit("max_queued_events", table[i].events);
        check_inotify_in(test_directory(), &finding);
        is_int(finding.level, table[i].level, "limits of inotify, case %zu: the level", i);
        ok(strstr(finding.text.data, table[i].says), "and it says: %s", finding.text.data);
        str_fini(&finding.text);
    }
}

int main(void)
{
    struct finding finding = {0};
    test_prunefs();
    test_inotify();
    for (machine_check *const *one = checks; *one; one++) {
        (*one)(&finding);
        examine(&finding, CHECK_PROBLEM);
    }
    check_ssd(test_directory(), &finding);
    examine(&finding, CHECK_WARNING);
    test_ssd_refused(test_path("absent"));
    test_ssd_refused("/proc/self/status");
    return done_testing();
}
