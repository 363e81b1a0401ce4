/* Claims at a join: which of several holders keeps an extent. */
#include "fs/wire/node.h"

#include "tests/lib/tap.h"

#include <string.h>

enum { EXTENTS = 70, NODES = 4, WORDS = (EXTENTS + CLAIMS_A_WORD - 1) / CLAIMS_A_WORD };

static uint64_t claims[NODES][WORDS];
static uint16_t holder[2 * EXTENTS];
static uint64_t best[2 * WORDS];

static void claim(uint32_t node, uint64_t extent, enum claim claim)
{
    claims[node][extent / CLAIMS_A_WORD] |= (uint64_t)claim << extent % CLAIMS_A_WORD * 2;
}

static void merge(uint32_t groups)
{
    struct claims_merged merged = {EXTENTS, holder, best};
    memset(holder, 0xff, sizeof holder);
    memset(best, 0, sizeof best);
    for (uint32_t i = 0; i < NODES; i++)
        claims_merge(&merged, NODES, groups, i, claims[i]);
}

int main(void)
{
    is_uint(claims_words(EXTENTS), WORDS, "two bits for each extent");
    claim(1, 0, CLAIM_PART);
    claim(2, 0, CLAIM_PART);
    claim(0, 31, CLAIM_PART);
    claim(2, 31, CLAIM_WHOLE);
    claim(1, 32, CLAIM_WHOLE);
    claim(3, 32, CLAIM_OWNED);
    claim(0, 33, CLAIM_OWNED);
    claim(1, 33, CLAIM_OWNED);
    claim(2, 69, CLAIM_WHOLE);
    claim(3, 69, CLAIM_PART);
    claim(3, 70, CLAIM_OWNED);
    merge(1);
    is_uint(holder[0], 1, "of two that hold a part the lower number keeps it");
    is_uint(holder[31], 2, "who holds all goes before who holds a part");
    is_uint(holder[32], 3, "of these the owner in the last layout does");
    is_uint(holder[33], 0, "of two owners the lower number");
    is_uint(holder[69], 2, "the last one, too");
    ok(holder[1] == NO_OWNER && holder[68] == NO_OWNER, "nobody keeps what nobody holds");
    is_uint(holder[EXTENTS], NO_OWNER, "nor what is past the last one");
    merge(2);
    is_uint(holder[0], 1, "each group looks at its own");
    is_uint(holder[EXTENTS + 0], 2, "holders");
    is_uint(holder[31], 0, "also where another group's");
    is_uint(holder[EXTENTS + 31], 2, "claim is higher");
    is_uint(holder[EXTENTS + 33], NO_OWNER, "and where it is the only one");
    return done_testing();
}
