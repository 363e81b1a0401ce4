/* The layout: properties of the rule over random worlds, worlds that form again, and what it must always be. Its
 * file is in test-layout-file.c. */
#include "tests/fs/world/worlds.h"
#include "tests/lib/tap.h"

#include "fs/base/cleanup.h"
#include "fs/plan/epoch-plan.h"
#include "fs/plan/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define ROUNDS 150

static bool same_digest(const struct layout *a, const struct layout *b)
{
    return memcmp(layout_digest(a), layout_digest(b), sizeof(struct digest)) == 0;
}

/* --- the rule --- */

struct tally {
    uint64_t bytes[WORLD_NODES], kept[WORLD_NODES], held[WORLD_NODES];
    uint64_t extents[WORLD_NODES], extents_kept[WORLD_NODES];
};

/* Is the owner in the group, and where anybody of it holds the extent, the first of those? */
static bool right_owner(const struct dealt_world *w, const struct layout *d, uint32_t group, uint64_t extent,
                        bool *kept)
{
    uint32_t owner = layout_owner(d, group, extent), holder = NO_OWNER;
    for (uint32_t i = w->nodes; i-- > 0;)
        if (layout_group(d, i) == group && world_holds(w, i, extent))
            holder = i;
    *kept = holder != NO_OWNER;
    if (owner == NO_OWNER)
        return !*kept;
    return owner < w->nodes && layout_group(d, owner) == group && (!*kept || owner == holder);
}

static uint64_t free_of(const struct dealt_world *w, const struct tally *t, uint32_t node)
{
    uint64_t capacity = w->node[node].capacity, most = t->kept[node] + t->kept[node] / 3;
    uint64_t taken = t->held[node] < most ? t->held[node] : most;
    return capacity > taken ? capacity - taken : 0;
}

static uint64_t largest_count(const struct dealt_world *w, const struct layout *d, uint32_t group,
                              const struct tally *t)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < w->nodes; i++)
        if (layout_group(d, i) == group && t->extents[i] > t->extents_kept[i] && t->extents[i] > most)
            most = t->extents[i];
    return most;
}

/* Nobody is given more than fits; what has no owner fits nowhere at the end; as long as all fit, nobody who was given
 * any has more extents than another one, give or take one, except for those whose room is too small for that. */
static bool right_shares(const struct dealt_world *w, const struct layout *d, uint32_t group, const struct tally *t,
                         uint64_t largest, uint64_t smallest_left)
{
    uint64_t dealt = 0, extents = 0, most = largest_count(w, d, group, t);
    bool any_full = smallest_left != UINT64_MAX;
    for (uint32_t i = 0; i < w->nodes; i++) {
        if (layout_group(d, i) != group)
            continue;
        uint64_t mine = t->bytes[i] - t->kept[i];
        if (mine > free_of(w, t, i) || free_of(w, t, i) - mine >= smallest_left)
            return false;
        any_full |= free_of(w, t, i) - mine < largest;
        dealt += mine;
        extents += t->extents[i] - t->extents_kept[i];
    }
    for (uint32_t i = 0; i < w->nodes && !any_full && extents; i++)
        if (layout_group(d, i) == group && t->extents[i] + 1 < most &&
            t->extents[i] - t->extents_kept[i] < free_of(w, t, i) / (dealt / extents))
            return false;
    return true;
}

static bool right_group(const struct dealt_world *w, const struct layout *d, uint32_t group)
{
    struct tally t = {0};
    uint64_t largest = 1, smallest_left = UINT64_MAX;
    for (uint64_t e = 0; e < extents_count(w->sizes->extents); e++) {
        uint64_t cost = extents_cost(w->sizes->extents, e);
        uint32_t owner = layout_owner(d, group, e);
        bool kept;
        for (uint32_t i = 0; i < w->nodes; i++)
            t.held[i] += world_holds(w, i, e) ? cost : 0;
        if (!right_owner(w, d, group, e, &kept))
            return false;
        largest = cost > largest ? cost : largest;
        if (owner == NO_OWNER) {
            smallest_left = cost < smallest_left ? cost : smallest_left;
            continue;
        }
        t.extents[owner]++;
        t.bytes[owner] += cost;
        t.kept[owner] += kept ? cost : 0;
        t.extents_kept[owner] += kept;
    }
    for (uint32_t i = 0; i < w->nodes; i++)
        if (layout_group(d, i) == group && (layout_owned(d, i) != t.bytes[i] || world_extents(d, w, i) != t.extents[i]))
            return false;
    return right_shares(w, d, group, &t, largest, smallest_left);
}

static bool right(const struct dealt_world *w, const struct layout *d)
{
    if (layout_nodes(d) != w->nodes || layout_groups(d) != w->groups)
        return false;
    for (uint32_t i = 0; i < w->nodes; i++)
        if (strcmp(layout_node(d, i)->id, w->node[i].id) != 0 ||
            strcmp(layout_node(d, i)->host, w->node[i].host) != 0 ||
            layout_node(d, i)->capacity != w->node[i].capacity || layout_group(d, i) != i * w->groups / w->nodes)
            return false;
    for (uint32_t group = 0; group < w->groups; group++)
        if (!right_group(w, d, group))
            return false;
    return true;
}

static void random_sizes(struct sizes *s, uint64_t *random)
{
    static uint64_t size[400];
    uint32_t files = 1 + (uint32_t)random_below(random, 400);
    for (uint32_t i = 0; i < files; i++)
        size[i] = random_below(random, 20) ? random_below(random, 300000) : random_below(random, 500 * MIB);
    sizes_begin(s, size, files);
}

/* How the capacities of a world are drawn, from what the whole dataset costs. */
enum capacities { EVEN, UNEVEN, SOME_NONE, TOO_SMALL, KINDS };
static const char *const kind_names[] = {"even capacities", "uneven ones", "some without any", "too small ones"};

static uint64_t draw_capacity(enum capacities kind, uint64_t whole, uint32_t share, uint64_t *random)
{
    switch (kind) {
    case EVEN:
        return 3 * whole / share;
    case UNEVEN:
        return random_below(random, 8 * whole / share + 1);
    case SOME_NONE:
        return random_below(random, 2) ? 0 : 6 * whole / share;
    case TOO_SMALL:
    case KINDS:
        break;
    }
    return random_below(random, whole / share + 1);
}

static void random_world(struct dealt_world *w, const struct sizes *s, enum capacities kind, uint64_t *random)
{
    uint64_t whole = 0;
    for (uint64_t e = 0; e < extents_count(s->extents); e++)
        whole += extents_cost(s->extents, e);
    uint32_t nodes = 1 + (uint32_t)random_below(random, WORLD_NODES);
    world_begin(w, s, random_below(random, 2) ? 1 : 1 + (uint32_t)random_below(random, nodes));
    for (uint32_t i = 0; i < nodes; i++)
        world_add(w, i, draw_capacity(kind, whole, (nodes + w->groups - 1) / w->groups, random));
    if (random_below(random, 2))
        for (uint64_t e = 0; e < extents_count(s->extents); e++)
            for (uint64_t times = random_below(random, 4); times > 0; times--)
                world_hold(w, (uint32_t)random_below(random, nodes), e);
}

static void test_random(enum capacities kind)
{
    uint64_t random = kind;
    unsigned wrong = 0, unlike = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct sizes s;
        struct dealt_world w;
        random_sizes(&s, &random);
        random_world(&w, &s, kind, &random);
        struct layout *d = world_deal(&w), *again = world_deal(&w);
        wrong += !right(&w, d);
        unlike += !same_digest(d, again);
        layout_close(d);
        layout_close(again);
        world_end(&w);
        sizes_end(&s);
    }
    is_uint(wrong, 0, "%d random worlds, %s: all as it must be", ROUNDS, kind_names[kind]);
    is_uint(unlike, 0, "and computed twice the same");
}

/* --- single cases --- */

static void many_alike(struct sizes *s, uint32_t files, uint64_t size)
{
    uint64_t *all = calloc(files, sizeof *all);
    for (uint32_t i = 0; i < files; i++)
        all[i] = size;
    sizes_begin(s, all, files);
    free(all);
}

static void test_stripes(void)
{
    static const uint64_t size = 100 * (uint64_t)EXTENT_BYTES + 5;
    struct sizes s;
    struct dealt_world w;
    sizes_begin(&s, &size, 1);
    world_begin(&w, &s, 1);
    for (uint32_t i = 0; i < 4; i++)
        world_add(&w, i, 30 * (uint64_t)EXTENT_BYTES);
    struct layout *d = world_deal(&w);
    unsigned turns = 0, owners = 0;
    for (uint64_t e = 0; e < 101; e++) {
        turns += layout_owner(d, 0, e) == e % 4;
        owners += layout_owner(d, 0, e) != NO_OWNER;
    }
    is_uint(owners, 101, "a file larger than any node is owned by all together");
    is_uint(turns, 101, "its stripes go round over the nodes");
    layout_close(d);
    world_end(&w);
    sizes_end(&s);
}

/* As many each, as far as it has room. */
static void test_even(void)
{
    struct sizes s;
    struct dealt_world w;
    many_alike(&s, 6000, 112 << 10);
    uint64_t cost = extents_cost(s.extents, 0);
    world_begin(&w, &s, 1);
    world_add(&w, 0, 1000 * cost);
    world_add(&w, 1, 0);
    world_add(&w, 2, 4000 * cost);
    world_add(&w, 3, 5000 * cost);
    world_add(&w, 4, cost - 1);
    struct layout *d = world_deal(&w);
    static const uint64_t expected[] = {1000, 0, 2500, 2500, 0};
    for (uint32_t i = 0; i < 5; i++) {
        is_uint(layout_owned(d, i), expected[i] * cost, "node %u owns %ju bytes", i, (uintmax_t)(expected[i] * cost));
        is_uint(world_extents(d, &w, i), expected[i], "in %ju extents", (uintmax_t)expected[i]);
    }
    layout_close(d);
    world_end(&w);
    sizes_end(&s);
}

static void plan_epoch(const struct sizes *s, const struct layout *d, enum plan_mode mode, uint32_t batch,
                       struct plan_summary *summary)
{
    CLEANUP_STR struct str why = STR_INIT;
    uint32_t samples = catalog_files(s->catalog);
    CLEANUP_FREE uint16_t *owner = malloc(samples * sizeof *owner);
    CLEANUP_FREE uint32_t *order = malloc(samples * sizeof *order);
    CLEANUP_FREE uint32_t *lists = malloc((samples + layout_nodes(d)) * sizeof *lists);
    struct plan *plan;
    if (!owner || !order || !lists || order_seeded(order, samples, 1, NULL))
        bail_out("no memory");
    for (uint32_t i = 0; i < samples; i++)
        owner[i] = (uint16_t)layout_owner(d, 0, extents_first(s->extents, i));
    struct plan_input input = {.order = order,
                               .count = samples,
                               .ranks = layout_nodes(d),
                               .batch = batch,
                               .mode = mode,
                               .echo = {.factor = ECHO_ONE},
                               .owners = {.nodes = layout_nodes(d), .groups = 1, .of = {owner}}};
    if (plan_create(&input, NULL, &plan, &why) || plan_run(plan, lists, NULL, summary))
        bail_out("no plan: %s", why.length ? why.data : "");
    plan_destroy(plan);
}

/* One node with twice the room of the others: it has as many samples as they, so that little moves and all is read. */
static void test_planned(void)
{
    static const uint64_t ram[] = {88, 44, 44, 44};
    struct sizes s;
    struct dealt_world w;
    struct plan_summary plan;
    many_alike(&s, 4000, 92 * MIB / 4000);
    world_begin(&w, &s, 1);
    for (uint32_t i = 0; i < 4; i++)
        world_add(&w, i, extents_room(s.extents, ram[i] * MIB));
    struct layout *d = world_deal(&w);
    for (uint32_t i = 0; i < 4; i++)
        is_uint(world_extents(d, &w, i), 1000, "of %ju MiB: 1000 samples", (uintmax_t)ram[i]);
    plan_epoch(&s, d, PLAN_LOCALITY, 32, &plan);
    ok(plan.moved * 1000 <= plan.samples * 65, "by locality %ju of %ju samples move", (uintmax_t)plan.moved,
       (uintmax_t)plan.samples);
    plan_epoch(&s, d, PLAN_LOCAL, 32, &plan);
    is_uint(plan.unread, 0, "local reading leaves none unread");
    is_uint(plan.local, 4000, "and all are local");
    layout_close(d);
    world_end(&w);
    sizes_end(&s);
}

static void test_two_holders(void)
{
    struct sizes s;
    struct dealt_world w;
    many_alike(&s, 10, 1000);
    world_begin(&w, &s, 2);
    for (uint32_t i = 0; i < 4; i++)
        world_add(&w, i, i == 1 ? 0 : 100000);
    world_hold(&w, 1, 3);
    world_hold(&w, 0, 3);
    world_hold(&w, 1, 4);
    world_hold(&w, 3, 3);
    struct layout *d = world_deal(&w);
    is_uint(layout_owner(d, 0, 3), 0, "of two holders the lower number keeps it");
    is_uint(layout_owner(d, 0, 4), 1, "one without any capacity keeps what it holds");
    is_uint(layout_owner(d, 1, 3), 3, "each group looks at its own holders");
    ok(right(&w, d), "and the rest is dealt");
    layout_close(d);
    world_end(&w);
    sizes_end(&s);
}

static void test_refused(void)
{
    struct sizes s;
    struct dealt_world w;
    struct layout *d = NULL;
    many_alike(&s, 3, 10);
    world_begin(&w, &s, 1);
    is_int(world_try(&w, &d), -EINVAL, "no nodes");
    world_add(&w, 0, 1000);
    w.groups = 2;
    is_int(world_try(&w, &d), -EINVAL, "more groups than nodes");
    w.groups = 0;
    is_int(world_try(&w, &d), -EINVAL, "no groups");
    w.groups = 1;
    w.node[0].id[5] = 'x';
    is_int(world_try(&w, &d), -EINVAL, "an id that is none");
    w.node[0].id[5] = '0';
    memset(w.node[0].host, 'h', sizeof w.node[0].host);
    is_int(world_try(&w, &d), -EINVAL, "a host without an end");
    strcpy(w.node[0].host, "host");
    world_add(&w, 1, 1000);
    w.groups = 2;
    struct message_member member[2] = {{w.node[0], {.room = 1000}}, {w.node[1], {.room = 1000}}};
    uint16_t holder[6] = {NO_OWNER, 1, NO_OWNER, NO_OWNER, NO_OWNER, NO_OWNER};
    struct layout_input input = {s.catalog, s.extents, 2, 2, member, holder};
    is_int(layout_compute(&input, &d), -EINVAL, "a holder of another group");
    holder[1] = 5;
    is_int(layout_compute(&input, &d), -EINVAL, "or one that is not there");
    ok(d == NULL, "nothing was made of them");
    layout_close(NULL);
    world_end(&w);
    sizes_end(&s);
}

/* --- compressed --- */

/* What is held in half of its room leaves the other half. */
static void test_compressed(void)
{
    struct sizes s;
    struct dealt_world w;
    many_alike(&s, 100, 1 << 20);
    uint64_t cost = extents_cost(s.extents, 0);
    world_begin(&w, &s, 1);
    for (uint32_t i = 0; i < 3; i++)
        world_add(&w, i, 20 * cost);
    for (uint64_t e = 0; e < 30; e++) /* the second one holds ten that the first one keeps */
        world_hold(&w, e / 20, e);
    for (uint64_t e = 10; e < 20; e++)
        world_hold(&w, 1, e);
    w.taken[0] = 10 * cost;
    w.taken[1] = 10 * cost;
    struct layout *d = world_deal(&w);
    static const uint64_t owned[] = {30, 20, 20}; /* 20 in 10 and 10 more, 10 in at most 10 and 10 more, 20 */
    for (uint32_t i = 0; i < 3; i++)
        is_uint(world_extents(d, &w, i), owned[i], "node %u, of which %ju of 20 are taken, owns %ju", i,
                (uintmax_t)(w.taken[i] / cost), (uintmax_t)owned[i]);
    is_uint(layout_unowned(d), 30, "the rest has no owner");
    layout_close(d);
    world_end(&w);
    sizes_end(&s);
}

/* --- dealing what has no owner --- */

static bool same_owners(const struct dealt_world *w, const struct layout *before, const struct layout *after)
{
    for (uint32_t group = 0; group < w->groups; group++)
        for (uint64_t e = 0; e < extents_count(w->sizes->extents); e++) {
            uint32_t owner = layout_owner(before, group, e);
            if (owner != NO_OWNER && layout_owner(after, group, e) != owner)
                return false;
        }
    return true;
}

/* Nobody is given more than has room, and what is left fits nowhere. */
static bool right_rooms(const struct dealt_world *w, const struct layout *before, const struct layout *after,
                        const uint64_t *room)
{
    for (uint32_t i = 0; i < w->nodes; i++) {
        uint32_t group = layout_group(after, i);
        uint64_t given = layout_owned(after, i) - layout_owned(before, i);
        if (given > room[i])
            return false;
        for (uint64_t e = 0; e < extents_count(w->sizes->extents); e++)
            if (layout_owner(after, group, e) == NO_OWNER && extents_cost(w->sizes->extents, e) <= room[i] - given)
                return false;
    }
    return true;
}

static void test_extend(void)
{
    uint64_t random = 7;
    unsigned wrong = 0, changed = 0, unlike = 0, more = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct sizes s;
        struct dealt_world w;
        uint64_t room[WORLD_NODES], nothing[WORLD_NODES] = {0};
        struct layout *after, *again, *none;
        random_sizes(&s, &random);
        random_world(&w, &s, TOO_SMALL, &random);
        for (uint32_t i = 0; i < w.nodes; i++)
            room[i] = random_below(&random, 3) ? random_below(&random, 2 * w.node[i].capacity + 1) : 0;
        struct layout *d = world_deal(&w);
        if (layout_extend(d, s.extents, room, &after) || layout_extend(d, s.extents, room, &again) ||
            layout_extend(d, s.extents, nothing, &none))
            bail_out("no memory");
        wrong += !right_rooms(&w, d, after, room);
        changed += !same_owners(&w, d, after) || !same_digest(d, none);
        unlike += !same_digest(after, again);
        more += layout_unowned(after) < layout_unowned(d);
        layout_close(d);
        layout_close(after);
        layout_close(again);
        layout_close(none);
        world_end(&w);
        sizes_end(&s);
    }
    is_uint(wrong, 0, "%d random worlds with new room: what had no owner is dealt as it fits", ROUNDS);
    is_uint(changed, 0, "no owner changes, and nothing does without room");
    is_uint(unlike, 0, "and computed twice the same");
    ok(more > ROUNDS / 2, "in %u of them more has owners than before", more);
}

/* --- exchange --- */

static struct layout *exchanged(const struct layout *d, const struct sizes *s, struct turn turn)
{
    struct layout *next;
    if (layout_exchange(d, s->extents, &turn, &next))
        bail_out("no memory");
    return next;
}

/* The rule itself is checked by 10-layout.t. */
static void test_exchange(void)
{
    static uint64_t size[2000];
    uint64_t random = 4;
    struct sizes s;
    struct dealt_world w;
    char text[DIGEST_TEXT];
    for (int i = 0; i < 2000; i++)
        size[i] = i % 200 ? random_below(&random, 200000) : random_below(&random, 1000 * MIB);
    sizes_begin(&s, size, 2000);
    world_begin(&w, &s, 2);
    for (uint32_t i = 0; i < 5; i++)
        world_add(&w, i, (1 + i) * 2000 * MIB);
    struct layout *d = world_deal(&w), *same = exchanged(d, &s, (struct turn){TURN_EXCHANGE, 0, 3, 1});
    struct layout *tenth = exchanged(d, &s, (struct turn){TURN_EXCHANGE, 100000, 3, 1});
    struct layout *shuffled = exchanged(tenth, &s, (struct turn){TURN_SHUFFLE, TURN_WHOLE, 0, 1});
    struct layout *other = exchanged(d, &s, (struct turn){TURN_EXCHANGE, 100000, 4, 1});
    ok(same_digest(d, same), "an exchange of nothing leaves the layout as it is");
    ok(!same_digest(tenth, other), "each epoch has an exchange of its own");
    is_str(digest_format(layout_digest(tenth), text), "e20bb2d48b1146a26498ada083cbe646",
           "the digest after a certain exchange");
    is_str(digest_format(layout_digest(shuffled), text), "9b73c1380d6cc138d9ceabac35cee30c", "and after a shuffle");
    is_int(layout_exchange(d, s.extents, &(struct turn){.cause = TURN_ROOM}, &other), -EINVAL,
           "what room makes is no exchange");
    layout_close(d);
    layout_close(same);
    layout_close(tenth);
    layout_close(shuffled);
    layout_close(other);
    world_end(&w);
    sizes_end(&s);
}

/* --- forming again --- */

/* The nodes of `names`, in that order; each holds what it owned in the world before, where it was in that. */
static void form(struct dealt_world *w, const struct sizes *s, const uint32_t *names, uint32_t nodes, uint64_t capacity,
                 const struct dealt_world *before, const struct layout *owned)
{
    world_begin(w, s, 1);
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t number = world_add(w, names[i], capacity);
        for (uint32_t was = 0; before && was < before->nodes; was++)
            for (uint64_t e = 0; !strcmp(before->node[was].id, w->node[i].id) && e < extents_count(s->extents); e++)
                if (layout_owner(owned, 0, e) == was)
                    world_hold(w, number, e);
    }
}

static void test_again(const char *what, const uint32_t *names, uint32_t nodes)
{
    static const uint32_t first[] = {10, 11, 12, 13, 14, 15};
    struct sizes s;
    struct dealt_world w, again;
    many_alike(&s, 5000, 1 << 20);
    uint64_t capacity = 2 * 5000 * extents_cost(s.extents, 0) / 6;
    form(&w, &s, first, 6, capacity, NULL, NULL);
    struct layout *d = world_deal(&w);
    form(&again, &s, names, nodes, capacity, &w, d);
    struct layout *d2 = world_deal(&again);
    unsigned lost = 0, unowned = 0;
    uint64_t none = 0;
    for (uint64_t e = 0; e < 5000; e++) {
        const char *was = w.node[layout_owner(d, 0, e)].id;
        uint32_t owner = layout_owner(d2, 0, e);
        unowned += owner == NO_OWNER;
        for (uint32_t i = 0; i < nodes; i++)
            lost += owner != i && strcmp(again.node[i].id, was) == 0;
    }
    for (uint32_t i = 0; i < nodes; i++)
        none += layout_owned(d2, i) == 0 && capacity > 0;
    is_uint(lost, 0, "%s: all survivors keep what they hold", what);
    is_uint(unowned, 0, "%s: everything has an owner", what);
    is_uint(none, nodes > 6 ? 1 : 0, "%s: only one that comes when all is held has nothing", what);
    layout_close(d);
    layout_close(d2);
    world_end(&w);
    world_end(&again);
    sizes_end(&s);
}

/* --- always the same --- */

static char *golden(char text[DIGEST_TEXT])
{
    static uint64_t size[3000];
    uint64_t random = 42;
    for (int i = 0; i < 3000; i++)
        size[i] = i % 100 ? random_below(&random, 200000) : random_below(&random, 1000 * MIB);
    struct sizes s;
    struct dealt_world w;
    sizes_begin(&s, size, 3000);
    world_begin(&w, &s, 2);
    for (uint32_t i = 0; i < 7; i++)
        world_add(&w, 100 - i, i == 2 ? 0 : (1 + i) * 700 * MIB);
    for (uint64_t e = 0; e < extents_count(s.extents); e += 5)
        world_hold(&w, (uint32_t)random_below(&random, 7), e);
    struct layout *d = world_deal(&w);
    digest_format(layout_digest(d), text);
    layout_close(d);
    world_end(&w);
    sizes_end(&s);
    return text;
}

static void test_digest(void)
{
    char text[DIGEST_TEXT];
    is_str(golden(text), "25c5a10a30f26a58c0c18ef08835bf3c", "the digest of a certain world");
    struct sizes s;
    struct dealt_world w;
    many_alike(&s, 100, 1000);
    world_begin(&w, &s, 1);
    world_add(&w, 0, 1 << 20);
    world_add(&w, 1, 1 << 20);
    struct layout *d = world_deal(&w), *other;
    strcpy(w.node[0].host, "elsewhere");
    w.node[0].capacity = w.node[1].capacity = 2 << 20;
    other = world_deal(&w);
    ok(same_digest(d, other), "it does not tell hosts, nor how much room there was");
    layout_close(other);
    w.node[1].id[0] = 'f';
    other = world_deal(&w);
    ok(!same_digest(d, other), "but ids");
    layout_close(other);
    w.groups = 2;
    w.node[1].id[0] = '0';
    other = world_deal(&w);
    ok(!same_digest(d, other), "and groups");
    layout_close(other);
    w.groups = 1;
    world_hold(&w, 0, 1);
    other = world_deal(&w);
    ok(!same_digest(d, other), "and owners");
    layout_close(other);
    layout_close(d);
    world_end(&w);
    sizes_end(&s);
}

static void test_million(void)
{
    struct sizes s;
    struct dealt_world w;
    many_alike(&s, 1000000, 112 << 10);
    uint64_t cost = extents_cost(s.extents, 0);
    for (int uneven = 0; uneven < 2; uneven++) {
        world_begin(&w, &s, 1);
        for (uint32_t i = 0; i < 16; i++)
            world_add(&w, i, (uint64_t)1000000 / 16 * cost * (uneven ? 1 + i % 5 : 1) / (uneven ? 2 : 1));
        struct layout *d = world_deal(&w);
        ok(right(&w, d), "a million extents over 16 %s nodes", uneven ? "uneven" : "even");
        layout_close(d);
        world_end(&w);
    }
    sizes_end(&s);
}

int main(void)
{
    static const uint32_t same[] = {10, 11, 12, 13, 14, 15}, fewer[] = {10, 11, 13, 14, 15},
                          more[] = {10, 11, 12, 13, 14, 15, 16}, reversed[] = {15, 14, 13, 12, 11, 10},
                          replaced[] = {14, 99, 13, 12, 10, 15};
    for (enum capacities kind = 0; kind < KINDS; kind++)
        test_random(kind);
    test_stripes();
    test_even();
    test_planned();
    test_two_holders();
    test_refused();
    test_compressed();
    test_extend();
    test_exchange();
    test_again("the same nodes", same, 6);
    test_again("one node less", fewer, 5);
    test_again("one node more", more, 7);
    test_again("the other way round", reversed, 6);
    test_again("one replaced, another order", replaced, 6);
    test_digest();
    test_million();
    return done_testing();
}
