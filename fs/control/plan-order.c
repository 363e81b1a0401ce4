/* Orders of epochs. The reader of a given order allocates it; other orders may be in a file. */
#include "fs/control/plan-order.h"
#include "fs/control/plan-without.h"

#include "fs/plan/order.h"

#include <errno.h>

/* A given order has at most one entry per two bytes. */
static uint64_t given_bytes_most(const struct plan_question *question, uint64_t n)
{
    const struct plan_request *w = &question->wanted;
    uint64_t wide = w->order == PLAN_ORDER_TEXT ? 2 : w->order == PLAN_ORDER_U32 ? 4 : 8;
    if (w->distinct && question->payload_length / wide >= n)
        return n * sizeof(uint32_t) + n / 8;
    return question->payload_length / wide * sizeof(uint32_t) + sizeof(uint32_t);
}

static struct plan_stop stop_of(const struct plan_question *question)
{
    return (struct plan_stop){question->asker->gave_up, question->asker->user};
}

static int take_given(const struct plan_question *question, uint32_t n, struct plan_memory *order, uint32_t *count)
{
    static const enum order_form form[] = {
        [PLAN_ORDER_U32] = ORDER_U32, [PLAN_ORDER_U64] = ORDER_U64, [PLAN_ORDER_TEXT] = ORDER_TEXT};
    const struct plan_stop stop = stop_of(question);
    const struct order_rules rules = {form[question->wanted.order], n, question->wanted.distinct, &stop};
    uint32_t *given = NULL;
    int error = charge_add(&order->charge, given_bytes_most(question, n), question->asker->why);
    if (!error)
        error = order_given(&rules, question->payload, question->payload_length, &given, count, question->asker->why);
    order->bytes = given;
    return error;
}

/* 0…n-1, or the seed's permutation. */
static int fill_order(const struct plan_request *w, uint32_t *order, uint32_t n, const struct plan_stop *stop)
{
    return w->order == PLAN_ORDER_NATURAL ? order_natural(order, n, stop)
                                          : order_seeded(order, n, w->seed + w->epoch, stop);
}

int plan_order_make(const struct plan_memory_of *of, const struct plan_question *question,
                    const struct samples *without, struct plan_memory *order, uint32_t *count)
{
    const struct plan_request *w = &question->wanted;
    const struct plan_stop stop = stop_of(question);
    uint32_t n = *count = samples_count(of->list);
    struct plan_without left = {0};
    int error = without ? plan_without_make(of->list, without, of->like, &left, question->asker->why) : 0;
    order->charge = charge_like(of->like);
    if (!error && plan_request_has_payload(w)) {
        error = take_given(question, n, order, count);
        if (!error && without)
            *count = plan_without_filter(&left, order->bytes, *count);
        plan_without_fini(&left);
        return error;
    }
    if (!error)
        error = plan_memory_take(of, (n + UINT64_C(1)) * sizeof(uint32_t), order, question->asker->why);
    if (!error && without)
        *count = n = left.kept;
    if (!error)
        error = fill_order(w, order->bytes, n, &stop);
    if (!error && without)
        plan_without_number(&left, order->bytes, n);
    plan_without_fini(&left);
    return error;
}

int plan_order_digest(const struct plan_question *question, struct samples *list, struct samples *without,
                      struct order_digest *order)
{
    struct digest of[] = {{{0}}, {{0}}};
    int error = samples_path_digest(list, &of[0]);
    if (!error && without)
        error = samples_path_digest(without, &of[1]);
    if (error)
        return str_no_memory(question->asker->why);
    order->part[ORDER_SAMPLES] = digest_head(&of[0]);
    order->part[ORDER_WITHOUT] = digest_head(&of[1]);
    order->part[ORDER_SEQUENCE] = plan_request_sequence(&question->wanted, question->payload, question->payload_length);
    return 0;
}

/* What a local epoch read before `skip` depends on the layout, which may have changed since. */
static int check_skip(const struct plan_request *w, uint32_t nodes, struct str *why)
{
    if (w->mode != PLAN_LOCAL || w->skip == 0 || w->pinned || w->digested || nodes == 1)
        return 0;
    return str_fail(why, -EINVAL,
                    "`skip` with `mode=local` needs `layout=`, the layout of the epoch's first plan: with another "
                    "layout, samples would be lost or repeated");
}

int plan_order_resume(const struct plan_question *question, struct samples *list, struct samples *without,
                      uint32_t nodes)
{
    const struct plan_request *w = &question->wanted;
    struct order_digest order;
    int error = check_skip(w, nodes, question->asker->why);
    if (!error && w->resumes)
        error = plan_order_digest(question, list, without, &order);
    return error || !w->resumes ? error : order_digest_check(&order, &w->resume, question->asker->why);
}
