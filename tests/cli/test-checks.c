/* cli/checks: what is read from files, and that every check says something. */
#include "cli/checks.h"
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

static void examine(const struct check *check, const char *ssd, enum check_level worst)
{
    struct finding finding = {0};

    check->run(ssd, &finding);
    ok(finding.text.length > 0, "a check says: %s", finding.text.length > 0 ? finding.text.data : "nothing");
    ok(finding.level <= CHECK_NOTE || finding.advice.length > 0, "and what to do where something is wrong");
    ok(finding.level <= worst, "its level is %d", (int)finding.level);
    finding_fini(&finding);
}

static const struct check *ssd_check(void)
{
    for (const struct check *check = checks; check->run; check++) {
        if (check->needs_ssd)
            return check;
    }
    return NULL;
}

static void test_ssd_refused(const char *directory)
{
    struct finding finding = {0};

    ssd_check()->run(directory, &finding);
    is_int(finding.level, CHECK_PROBLEM, "as an SSD directory it is a problem: %s", directory);
    finding_fini(&finding);
}

int main(void)
{
    test_prunefs();
    for (const struct check *check = checks; check->run; check++)
        examine(check, test_directory(), CHECK_PROBLEM);
    examine(ssd_check(), test_directory(), CHECK_WARNING);
    test_ssd_refused(test_path("absent"));
    test_ssd_refused("/proc/self/status");
    return done_testing();
}
