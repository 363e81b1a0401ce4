/* Orders: PyTorch's by heart, and given ones with all that may be wrong with them. */
#include "fs/plan/order.h"
#include "fs/plan/random.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool stop_at_once(void *user)
{
    ++*(int *)user;
    return true;
}

static bool stop_never(void *user)
{
    ++*(int *)user;
    return false;
}

static void test_seeded(void)
{
    /* torch.randperm(10, generator=torch.Generator().manual_seed(0)) */
    static const uint32_t ten[] = {4, 1, 7, 5, 3, 9, 0, 8, 6, 2};
    enum { LONG = 200000 };
    uint32_t order[10], *many = malloc(LONG * sizeof *many), *again = malloc(LONG * sizeof *again);
    uint64_t sum = 0;
    int asked = 0;
    is_int(order_seeded(order, 10, 0, NULL), 0, "ten");
    is_mem(order, ten, sizeof ten, "as PyTorch has them");
    is_int(order_seeded(order, 0, 0, NULL), 0, "none");
    is_int(order_seeded(order, 1, 5, NULL), 0, "one");
    is_uint(order[0], 0, "which is 0");
    struct plan_stop never = {stop_never, &asked}, once = {stop_at_once, &asked};
    is_int(order_seeded(many, LONG, 7, &never), 0, "many");
    ok(asked > 4, "it asked now and then whether to go on");
    is_int(order_seeded(again, LONG, 7 + (1ull << 32), NULL), 0, "of the seed the lower half counts");
    is_mem(many, again, LONG * sizeof *many, "as with PyTorch");
    for (uint32_t i = 0; i < LONG; i++)
        sum += many[i];
    is_uint(sum, (uint64_t)LONG * (LONG - 1) / 2, "all are there");
    is_int(order_seeded(many, LONG, 7, &once), -EINTR, "interrupted");
    is_int(order_natural(many, LONG, &once), -EINTR, "the natural one, too");
    is_int(order_natural(many, 3, NULL), 0, "the natural one");
    is_uint(many[2], 2, "is 0, 1, 2");
    free(many);
    free(again);
}

static void test_random(void)
{
    struct mt19937 mt;
    uint32_t last = 0;
    /* Matsumoto's reference: the 10000th number of seed 5489. */
    mt_seed(&mt, 5489);
    for (int i = 0; i < 10000; i++)
        last = mt_next(&mt);
    is_uint(last, 4123659995u, "MT19937");
    ok(random_at(1, RANDOM_EXAMPLES, 0) != random_at(1, RANDOM_BATCHES, 0), "uses differ");
    is_uint(random_at(1, RANDOM_EXAMPLES, 0), 0x5e41ab087439611eu, "the place's number, by heart");
}

struct sample {
    const char *text;
    bool distinct;
    int error;
    const char *why; /* a part of it */
};

/* Lists of five samples. */
static const struct sample texts[] = {
    {"0 1 2 3 4", true, 0, ""},
    {"4\n3\r\n2\n1\n0\n", true, 0, ""},
    {"  4\t3 2 1   0  ", true, 0, ""},
    {"00004 3 2 1 0", true, 0, ""},
    {"0 1 2 3", true, -EINVAL, "too short"},
    {"", true, -EINVAL, "too short"},
    {"0 1 2 3 4 0", true, -EINVAL, "too long"},
    {"0 1 2 3 3", true, -EINVAL, "entry 4 is 3 again"},
    {"0 1 2 3 5", true, -ERANGE, "0 to 4"},
    {"0 1 2 3 99999999999999999999999", true, -ERANGE, "entry 4"},
    {"0 1 2 3 4294967296", true, -ERANGE, "4294967296"},
    {"0 1 2 -3 4", true, -EINVAL, "`-3`"},
    {"0 1 2 3x 4", true, -EINVAL, "`3x`"},
    {"0,1,2,3,4", false, -EINVAL, "`0,1,2,3,4`"},
    {"0 1 2 3 3 3 0", false, 0, ""},
    {"", false, 0, ""},
    {"1 7", false, -ERANGE, "entry 1 is 7"},
};

static void test_texts(void)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct sample *s = &texts[i];
        struct order_rules rules = {ORDER_TEXT, 5, s->distinct, NULL};
        CLEANUP_STR struct str why = STR_INIT;
        uint32_t *order = NULL, count = 0;
        size_t n = strlen(s->text);
        char *exact = malloc(n + 1); /* its end is where a sanitizer sees it */
        exact = realloc(memcpy(exact, s->text, n), n + !n);
        is_int(order_given(&rules, exact, n, &order, &count, &why), s->error, "`%s`", s->text);
        ok(strstr(why.data ? why.data : "", s->why), "says why: %s", why.data ? why.data : "");
        ok(s->error ? !order : order != NULL, "an order only where it is good");
        free(exact);
        free(order);
    }
}

static void test_binary(void)
{
    const uint32_t good[] = {3, 1, 0, 2, 4}, twice[] = {3, 1, 0, 3, 4}, far[] = {3, 1, 0, 5, 4};
    const uint64_t wide[] = {4, 3, 2, 1, 0}, high[] = {4, 3, 2, 1, 1ull << 32};
    struct order_rules u32 = {ORDER_U32, 5, true, NULL}, u64 = {ORDER_U64, 5, true, NULL},
                       any = {ORDER_U32, 5, false, NULL};
    CLEANUP_STR struct str why = STR_INIT;
    uint32_t *order = NULL, count;
    char odd[1 + sizeof good];
    int asked = 0;
    struct plan_stop once = {stop_at_once, &asked};
    memcpy(odd + 1, good, sizeof good);
    is_int(order_given(&u32, odd + 1, sizeof good, &order, &count, &why), 0, "u32, at an odd address");
    is_mem(order, good, sizeof good, "is taken");
    free(order);
    is_int(order_given(&u64, wide, sizeof wide, &order, &count, &why), 0, "u64");
    is_uint(order[0], 4, "is taken");
    is_uint(count, 5, "five of them");
    free(order);
    order = NULL;
    is_int(order_given(&u32, good, sizeof good - 1, &order, &count, &why), -EINVAL, "not a whole number of u32");
    is_int(order_given(&u32, good, sizeof good - 4, &order, &count, &why), -EINVAL, "one too few");
    is_int(order_given(&u32, twice, sizeof twice, &order, &count, &why), -EINVAL, "one twice");
    is_int(order_given(&u32, far, sizeof far, &order, &count, &why), -ERANGE, "one that is none");
    is_int(order_given(&u64, high, sizeof high, &order, &count, &why), -ERANGE, "one whose lower half would do");
    u64.stop = &once;
    is_int(order_given(&u64, wide, sizeof wide, &order, &count, &why), -EINTR, "interrupted");
    ok(!order, "nothing is left of them");
    is_int(order_given(&any, twice, sizeof twice, &order, &count, &why), 0, "twice is fine with distinct=no");
    free(order);
    is_int(order_given(&any, twice, 0, &order, &count, &why), 0, "so is none");
    is_uint(count, 0, "of them");
    free(order);
}

int main(void)
{
    test_random();
    test_seeded();
    test_texts();
    test_binary();
    return done_testing();
}
