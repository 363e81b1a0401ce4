#include "fs/base/array.h"

#include <stdlib.h>

enum { LEAST_ITEMS = 16 };

void *array_grown(void *array, size_t *room, size_t wanted, size_t item)
{
    if (wanted <= *room)
        return array;
    size_t more = *room * 2 > LEAST_ITEMS ? *room * 2 : LEAST_ITEMS;
    if (more < wanted)
        more = wanted;
    void *grown = reallocarray(array, more, item);
    if (grown)
        *room = more;
    return grown;
}
