/* Arrays of plans: in files without a name, or allocated. */
#include "fs/control/plan-memory.h"

#include "fs/control/control-private.h"

#include "fs/base/size.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

static void add_room(struct budget *room, struct str *why)
{
    char most[SIZE_TEXT], taken[SIZE_TEXT];
    pthread_mutex_lock(&room->lock);
    size_format(room->most, most, sizeof most);
    size_format(room->used, taken, sizeof taken);
    pthread_mutex_unlock(&room->lock);
    str_addf(why, "; plans of record lists may also use %s in files, %d bytes per record, and %s of that is in use",
             most, RECORD_ROOM, taken);
}

int plan_memory_charge(const struct plan_memory_of *of, uint64_t bytes, struct plan_memory *memory, struct str *why)
{
    struct budget *room = &of->control->record_room;
    bool records = samples_records(of->list) && of->like && of->like->budget;
    if (records) {
        budget_resize(room, RECORD_ROOM * samples_table_record_count(of->control->samples));
        memory->charge = (struct charge){.budget = room, .other = of->like->other};
        if (!charge_add(&memory->charge, bytes, NULL))
            return 0;
    }
    memory->charge = charge_like(of->like);
    int error = charge_add(&memory->charge, bytes, why);
    if (error && records)
        add_room(room, why);
    return error;
}

/* If no file can be created, allocate the memory, if the budget allows. */
static int leave_room(struct control *control, struct plan_memory *memory, struct str *why)
{
    struct charge charge = {.budget = &control->budget, .other = memory->charge.other};
    int error = charge_add(&charge, memory->charge.bytes, why);
    charge_fini(&memory->charge);
    memory->charge = charge;
    return error;
}

/* Page faults of arrays of megabytes take a fifth of the time of a plan; huge pages avoid most of them. They may add an
 * eighth to the memory that is charged. */
static void *allocate_pages(uint64_t bytes)
{
    uint64_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uint64_t huge = whole - bytes > bytes / 8 ? whole - HUGE_PAGE : whole;
    if (!huge)
        return malloc(bytes + !bytes);
    void *memory = aligned_alloc(HUGE_PAGE, whole);
    if (memory)
        madvise(memory, huge, MADV_HUGEPAGE); /* without huge pages it is only slower */
    return memory;
}

int plan_memory_make(struct control *control, uint64_t bytes, struct plan_memory *memory, struct str *why)
{
    if (memory->charge.budget == &control->record_room) {
        if (!scratch_make(samples_table_directory(control->samples), bytes, &memory->file)) {
            memory->bytes = memory->file.bytes;
            return 0;
        }
        int error = leave_room(control, memory, why);
        if (error)
            return error;
    }
    memory->bytes = allocate_pages(bytes);
    return memory->bytes ? 0 : str_no_memory(why);
}

int plan_memory_take(const struct plan_memory_of *of, uint64_t bytes, struct plan_memory *memory, struct str *why)
{
    int error = plan_memory_charge(of, bytes, memory, why);
    return error ? error : plan_memory_make(of->control, bytes, memory, why);
}

void plan_memory_fini(struct plan_memory *memory)
{
    if (!memory->file.bytes)
        free(memory->bytes);
    scratch_fini(&memory->file);
    charge_fini(&memory->charge);
    memory->bytes = NULL;
}
