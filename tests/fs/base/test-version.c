/* fs/base/version.h */
#include "fs/base/version.h"
#include "tests/lib/tap.h"

static void test_matches(void)
{
    static const struct {
        const char *a, *b;
        bool match;
    } table[] = {
        {"", "", false},
        {"1.2.3", "", false},
        {"1.2.3", "1.2.3", true},
        {"1.2.3", "1.2.0", true},
        {"1.2.3", "1.2.30", true},
        {"1.2.3", "1.20.3", false},
        {"1.2.3", "11.2.3", false},
        {"0.1.0", "0.2.0", false},
        {"1.2.3", "2.2.3", false},
        {"1.2.3-rc.1", "1.2.3", false},
        {"1.2.3-rc.1", "1.2.3-rc.2", false},
        {"1.2.3-rc.1", "1.2.4-rc.1", true},
        {"1.2.3-rc.1+a", "1.2.3-rc.1+b-c", true},
        {"1.2.3+a-b", "1.2.3+c", true},
        {"1.2", "1.2.3", true},
        {"1.2", "1", false},
        {"nonsense", "nonsense", true},
        {"nonsense", "other", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        is_int(version_matches(table[i].a, table[i].b), table[i].match, "'%s' and '%s'", table[i].a, table[i].b);
        is_int(version_matches(table[i].b, table[i].a), table[i].match, "'%s' and '%s'", table[i].b, table[i].a);
    }
}

int main(void)
{
    test_matches();
    ok(version_matches(version_text, version_text), "this version and itself");
    return done_testing();
}
