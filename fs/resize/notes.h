/* Notes that a dying resizer leaves to the next one: its work, and how much of that is done. They are in memory whose
 * descriptor the resizer's parent keeps; without a descriptor, nothing is left. */
#ifndef FS_RESIZE_NOTES_H
#define FS_RESIZE_NOTES_H

#include "fs/catalog/derived.h"

enum notes_stage {
    NOTES_EMPTY,   /* of no use to the next one */
    NOTES_LISTED,  /* the files are listed, and the records have what is known about them */
    NOTES_TOLD,    /* all of them are made and stored, and other nodes were told */
    NOTES_SHARING, /* nodes exchange their records: nobody can resume in the middle of that */
};

struct notes {
    uint32_t stage;           /* enum notes_stage */
    uint32_t files;           /* of the catalog */
    uint32_t listed, unknown; /* of these: to be made here; without a result on any node */
    uint64_t known;           /* room that earlier results take in tiers */
    uint64_t before, after;   /* bytes of these */
    struct derived_record record[];
};

/* Opens the notes in `fd` (-1: private memory); if they are empty, copies the records of `derived`. `derived` uses
 * their records from now on. They stay until the process ends. */
int notes_open(int fd, struct derived *derived, struct notes **notes);
uint32_t *notes_list(struct notes *notes); /* of files to be made: room for all listed files */
void notes_reach(struct notes *notes, enum notes_stage stage);

#endif
