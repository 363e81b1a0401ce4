/* Arrays that grow. */
#ifndef FS_BASE_ARRAY_H
#define FS_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* Grows the array to at least `wanted` items and at least twice its room. NULL: no memory, and the old array stays
 * valid. */
void *array_grown(void *array, size_t *room, size_t wanted, size_t item);

/* Makes room for `wanted` > 0 items: 0 or -ENOMEM. `array` and `room`, of any integer type, are changed in place. */
#define array_reserve(array, room, wanted)                                                                             \
    ({                                                                                                                 \
        size_t room_ = (room);                                                                                         \
        void *grown_ = array_grown(array, &room_, wanted, sizeof *(array));                                            \
        if (grown_) {                                                                                                  \
            (array) = grown_;                                                                                          \
            (room) = (__typeof__(room))room_;                                                                          \
        }                                                                                                              \
        grown_ ? 0 : -ENOMEM;                                                                                          \
    })

/* How many of the numbers i from 0 to n - 1 fulfil the condition: it holds for the first of them, and for none after
 * the first for which it does not hold. */
#define bisect(i, n, condition)                                                                                        \
    ({                                                                                                                 \
        uint64_t low_ = 0, high_ = (n);                                                                                \
        while (low_ < high_) {                                                                                         \
            const uint64_t i = low_ + (high_ - low_) / 2;                                                              \
            if (condition)                                                                                             \
                low_ = i + 1;                                                                                          \
            else                                                                                                       \
                high_ = i;                                                                                             \
        }                                                                                                              \
        low_;                                                                                                          \
    })

#endif
