/* Accounts for a number of bytes: which requests have them. */
#include "fs/control/budget.h"

#include "fs/base/cleanup.h"
#include "fs/base/size.h"

#include <errno.h>

enum { STEP = 1 << 20, OTHERS_PART = 4 };

void budget_init(struct budget *budget, uint64_t most, bool (*make_room)(void *user), void *user)
{
    *budget = (struct budget){.most = most, .make_room = make_room, .user = user};
    pthread_mutex_init(&budget->lock, NULL);
}

void budget_resize(struct budget *budget, uint64_t most)
{
    LOCK_SCOPE(&budget->lock);
    budget->most = most;
}

void budget_fini(struct budget *budget)
{
    pthread_mutex_destroy(&budget->lock);
}

static void refuse_charge(const struct charge *charge, uint64_t bytes, struct str *why)
{
    char wanted[SIZE_TEXT], most[SIZE_TEXT], taken[SIZE_TEXT];
    struct budget *budget = charge->budget;
    if (!why)
        return;
    pthread_mutex_lock(&budget->lock);
    uint64_t used = charge->other ? budget->others : budget->used;
    pthread_mutex_unlock(&budget->lock);
    size_format(used > charge->bytes ? used - charge->bytes : 0, taken, sizeof taken);
    size_format(charge->bytes + bytes, wanted, sizeof wanted);
    size_format(charge->other ? budget->most / OTHERS_PART : budget->most, most, sizeof most);
    str_addf(why,
             "it takes at least %s of memory, but %s together may use %s (request_memory=), and %s of that is in use",
             wanted, charge->other ? "all users except the mount's owner" : "all requests", most, taken);
}

/* 0; -ENOMEM: other requests must return memory first; -E2BIG: even that would not help. */
static int try_charge(struct budget *budget, const struct charge *charge, uint64_t bytes)
{
    int error = 0;
    LOCK_SCOPE(&budget->lock);
    if (bytes > budget->most || (charge->other && budget->others + bytes > budget->most / OTHERS_PART))
        error = -E2BIG;
    else if (budget->used + bytes > budget->most) /* `most` may have been lowered below `used` */
        error = -ENOMEM;
    else {
        budget->used += bytes;
        budget->others += charge->other ? bytes : 0;
    }
    return error;
}

int charge_add(struct charge *charge, uint64_t bytes, struct str *why)
{
    struct budget *budget = charge->budget;
    int error = 0;
    if (budget)
        do
            error = try_charge(budget, charge, bytes);
        while (error == -ENOMEM && budget->make_room && budget->make_room(budget->user));
    if (error)
        refuse_charge(charge, bytes, why);
    else
        charge->bytes += bytes;
    return error ? -ENOMEM : 0;
}

struct charge charge_like(const struct charge *charge)
{
    return charge ? (struct charge){.budget = charge->budget, .other = charge->other} : (struct charge){0};
}

int charge_reach(struct charge *charge, uint64_t bytes, struct str *why)
{
    if (!charge || bytes <= charge->bytes)
        return 0;
    uint64_t missing = bytes - charge->bytes;
    return charge_add(charge, missing < STEP ? STEP : missing, why);
}

static void give_back_bytes(struct charge *charge, uint64_t bytes, bool in_hand_only)
{
    struct budget *budget = charge->budget;
    if (!budget)
        return;
    LOCK_SCOPE(&budget->lock);
    budget->used -= in_hand_only ? 0 : bytes;
    budget->others -= charge->other ? bytes : 0;
}

void charge_cut(struct charge *charge, uint64_t bytes)
{
    if (bytes >= charge->bytes)
        return;
    give_back_bytes(charge, charge->bytes - bytes, false);
    charge->bytes = bytes;
}

void charge_keep(struct charge *charge)
{
    give_back_bytes(charge, charge->bytes, true);
    charge->other = false;
}

struct charge charge_take(struct charge *charge)
{
    struct charge taken = *charge;
    charge->bytes = 0;
    return taken;
}

void charge_fini(struct charge *charge)
{
    charge_cut(charge, 0);
}
