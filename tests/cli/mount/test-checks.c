/* cli/checks: what is read from files, and that every check says something. */
#include "cli/mount/checks.h"
#include "tests/lib/tap.h"

#include <string.h>

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

int main(void)
{
    struct finding finding = {0};

    test_prunefs();
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
