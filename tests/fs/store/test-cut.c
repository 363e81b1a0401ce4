/* Parts: their numbers are dense and in order, and each knows its bytes. */
#include "tests/fs/store/filling.h"
#include "tests/lib/tap.h"

#include <stdio.h>

int main(void)
{
    static const uint64_t sizes[] = {
        0, 1, VALUE_BYTES, PIECE_BYTES, PIECE_BYTES + 1, 3, 10 * PIECE_BYTES, 5, (uint64_t)70 << 30};
    struct filling f;
    filling_begin(&f);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%zu", i);
        filling_add(&f, name, sizes[i]);
    }
    filling_scan(&f);
    uint64_t next = 0;
    for (uint32_t file = 0; file < sizeof sizes / sizeof *sizes; file++) {
        uint64_t size = filling_size(&f, file), from, to;
        uint64_t parts = size <= PIECE_BYTES ? 1 : (size + VALUE_BYTES - 1) / VALUE_BYTES;
        is_uint(cut_first(&f.parts, file), next, "file %u begins at part %ju", file, (uintmax_t)next);
        cut_bytes(&f.parts, file, 0, &from, &to);
        ok(from == 0 && to == (parts == 1 ? size : VALUE_BYTES), "its first part's bytes");
        uint64_t last = size ? size - 1 : 0;
        is_uint(cut_at(&f.parts, file, last), next + parts - 1, "its last part");
        cut_bytes(&f.parts, file, last, &from, &to);
        ok(to == size && from == (parts == 1 ? 0 : (size - 1) / VALUE_BYTES * VALUE_BYTES), "its last part's bytes");
        uint64_t wrong = 0;
        for (uint64_t part = 0; part < parts; part += part < 100 ? 1 : parts / 50)
            wrong += cut_file(&f.parts, next + part, &from) != file || from != part * VALUE_BYTES;
        is_uint(wrong, 0, "its parts are its");
        next += parts;
    }
    is_uint(f.parts.pieces, next, "parts in all");
    filling_end(&f);
    return done_testing();
}
