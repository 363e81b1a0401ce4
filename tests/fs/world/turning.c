#include "tests/fs/world/turning.h"

#include "fs/world/layout.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct dataset turning_set;
const uint64_t turning_ram[NODES] = {12 * MIB, 12 * MIB};

/* All that can be compressed to next to nothing: a part of it fits, as it is, and all of it in the end. */
void turning_set_up(void)
{
    dataset_begin(&turning_set);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%d/sparse-%02d", i % 3, i);
        dataset_add(&turning_set, name, MIB - (uint64_t)i);
    }
    dataset_scan(&turning_set);
}

void turning_begin(struct fake *f)
{
    fake_begin(f, &turning_set, NODES, turning_ram, LONG, NULL);
    fake_join(f, 1);
}

struct digest turning_layout(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    struct digest digest = view.layout;
    peers_view_release(&view);
    return digest;
}

uint64_t turning_unowned(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    uint64_t count = layout_unowned(view.owners);
    peers_view_release(&view);
    return count;
}

uint64_t turning_settled(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    uint64_t round = view.settled;
    peers_view_release(&view);
    return round;
}

bool turning_has(struct fake *f, uint32_t node, const struct digest *digest)
{
    struct digest now = turning_layout(f, node);
    return digest_equal(&now, digest);
}

bool turning_staged(struct fake *f, uint32_t node, uint64_t round)
{
    struct stage_progress p;
    store_stage_progress(f->node[node].store, &p);
    return p.state == STAGE_DONE && p.round == round;
}

void turning_stage(struct fake *f, uint64_t round)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        if (store_stage_start(f->node[i].store, round, NULL))
            bail_out("no stage");
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(turning_staged(f, i, round));
}

struct turn turning_for_room(uint64_t round)
{
    return (struct turn){.cause = TURN_ROOM, .epoch = round};
}

/* Once it has seen that the move before is done. */
static bool is_ready(struct fake *f, uint32_t node, const struct turn *turn, uint64_t *room)
{
    int status = fake_ready(f, node, turn, room);
    if (status && status != -EBUSY)
        bail_out("node %u is not ready: %s", node, strerror(-status));
    return status == 0;
}

bool turning_compute(struct fake *f, const struct turn *turn, struct digest *layout)
{
    uint64_t room[FAKE_NODES];
    bool agree = true;
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(is_ready(f, i, turn, &room[i]));
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct digest one;
        agree &= fake_compute(f, i, turn, room, &one) == 0 && (i == 0 || digest_equal(layout, &one));
        *layout = one;
    }
    return agree;
}

bool turning_deal(struct fake *f, uint64_t round, struct digest *layout)
{
    struct turn turn = turning_for_room(round);
    return turning_compute(f, &turn, layout);
}

void turning_settle(struct fake *f, uint32_t node, uint64_t round, uint64_t k, const struct digest *layout)
{
    struct turn turn = turning_for_room(round);
    fake_settle(f, node, &turn, k, layout);
}

void turning_settle_all(struct fake *f, uint64_t round, uint64_t k, const struct digest *layout)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        turning_settle(f, i, round, k, layout);
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(turning_settled(f, i) >= round);
}

void turning_take(struct fake *f, uint64_t round, const struct digest *layout)
{
    turning_settle_all(f, round, f->last.k + 1, layout);
}

bool turning_reads(struct fake *f, uint32_t node)
{
    bool right = true;
    for (uint32_t file = 0; file < FILES; file++) {
        struct span span = {.file = file, .length = (uint32_t)dataset_size(&turning_set, file)};
        right &= read_check(f->node[node].store, &turning_set, &span, NULL) == 0;
    }
    return right;
}

int turning_deal_all(struct fake *f, uint64_t round)
{
    struct digest layout;
    for (int turns = 0;; turns++, round += 2) {
        if (!turning_deal(f, round, &layout))
            bail_out("the servers do not agree");
        bool over = turning_has(f, 0, &layout);
        turning_take(f, round, &layout);
        if (over)
            return turns;
        for (uint32_t i = 0; i < f->nodes; i++)
            wait_until(turning_staged(f, i, round + 2));
    }
}

void turning_restart(struct fake *f, uint32_t node)
{
    fake_leave(f, node);
    fake_close(f, node);
    fake_open(f, node, true);
    fake_resume(f, node);
}
