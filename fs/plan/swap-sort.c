/* Radix sort of items by cost, then position. Digits that are equal in all items are skipped. Positions are mostly
 * ascending already. */
#include "fs/plan/swaps-inside.h"

#include <string.h>

enum { DIGIT = 8, DIGITS = 1 << DIGIT, POSITION_DIGITS = 4, KEY_DIGITS = 11 /* of a position, then of a cost */ };

static unsigned digit_of(const struct swap_item *item, unsigned d)
{
    return (d < POSITION_DIGITS ? item->position >> d * DIGIT : item->cost >> (d - POSITION_DIGITS) * DIGIT) % DIGITS;
}

/* Sort by one digit; the sort is stable. */
static void sort_by_digit(const struct swap_item *from, struct swap_item *to, uint32_t n, unsigned d)
{
    uint32_t place[DIGITS] = {0}, at = 0;
    for (uint32_t i = 0; i < n; i++)
        place[digit_of(&from[i], d)]++;
    for (unsigned i = 0; i < DIGITS; i++) {
        uint32_t count = place[i];
        place[i] = at;
        at += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[place[digit_of(&from[i], d)]++] = from[i];
}

static void insert_items(struct swap_item *item, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct swap_item one = item[i];
        uint32_t at = i;
        for (; at > 0 && swap_item_is_below(&one, &item[at - 1]); at--)
            item[at] = item[at - 1];
        item[at] = one;
    }
}

void swap_items_sort(struct swap_item *item, uint32_t n, struct swap_item *spare)
{
    enum { FEW = 20 };
    struct swap_item *from = item, *to = spare;
    struct swap_item differ = {0};
    bool ascend = true;
    if (n <= FEW) {
        insert_items(item, n);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        differ.cost |= item[i].cost ^ item[0].cost;
        differ.position |= item[i].position ^ item[0].position;
        ascend &= item[i].position > item[i - 1].position;
    }
    for (unsigned d = ascend ? POSITION_DIGITS : 0; d < KEY_DIGITS; d++) {
        if (digit_of(&differ, d) == 0)
            continue;
        sort_by_digit(from, to, n, d);
        from = to;
        to = from == item ? spare : item;
    }
    if (from != item)
        memcpy(item, from, n * sizeof *item);
}
