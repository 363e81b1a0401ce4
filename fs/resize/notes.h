/* What a resizer leaves to the next one where it dies: what it has to do, and what it has done of that. It lies in
 * memory whose descriptor the resizer's parent keeps; without one nothing is left. */
#ifndef FS_RESIZE_NOTES_H
#define FS_RESIZE_NOTES_H

#include "fs/catalog/derived.h"

enum notes_stage {
    NOTES_EMPTY,   /* nothing is of use to the next one */
    NOTES_LISTED,  /* the files are listed, and what is known of them is in the records */
    NOTES_TOLD,    /* all of them are made and stored, and other nodes have been told so */
    NOTES_SHARING, /* nodes tell each other what they have made: nobody can go on in the middle of that */
};

struct notes {
    uint32_t stage;           /* enum notes_stage */
    uint32_t files;           /* of the catalog */
    uint32_t listed, unknown; /* of these: to be made here, and unknown to all nodes */
    uint64_t known;           /* what was made before takes so much in tiers: */
    uint64_t before, after;   /* bytes of that */
    struct derived_record record[];
};

/* Of what `fd` (-1: memory of its own) has, or of nothing: then with the records of `derived`. These are where
 * `derived` has its records from now on. They stay until the process ends. */
int notes_open(int fd, struct derived *derived, struct notes **notes);
uint32_t *notes_list(struct notes *notes); /* of files to be made: room for as many as there are */
void notes_reach(struct notes *notes, enum notes_stage stage);

#endif
