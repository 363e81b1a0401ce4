/* A job as text: words, each with a NUL: numbers, then paths, then the words of the command with their count, then the
 * variables. */
#include "cli/launch/launch-job.h"

#include "fs/base/size.h"
#include "fs/wire/node.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIXED = 9, GRACE_MOST = 86400 }; /* words before those of the command */

static void add_word(struct str *out, const char *word)
{
    str_add(out, word, strlen(word) + 1);
}

static void add_number(struct str *out, size_t number)
{
    str_addf(out, "%zu", number);
    str_add(out, "", 1);
}

static size_t count_of(char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

void launch_job_write(const struct launch_job *job, struct str *out)
{
    add_number(out, job->rank);
    add_number(out, job->nodes);
    add_number(out, job->grace);
    add_word(out, job->host);
    add_word(out, job->directory);
    add_word(out, job->options);
    add_word(out, job->source);
    add_word(out, job->mountpoint);
    add_number(out, count_of(job->command));
    for (char **word = job->command; *word; word++)
        add_word(out, *word);
    for (char **word = job->environment; *word; word++)
        add_word(out, *word);
}

static int take_words(struct launch_job *job, char **words, size_t count)
{
    uint64_t rank, nodes, grace, commands;
    if (count < FIXED || number_parse(words[0], 0, NODES_MOST, &rank) ||
        number_parse(words[1], 0, NODES_MOST, &nodes) || number_parse(words[2], 0, GRACE_MOST, &grace) ||
        number_parse(words[FIXED - 1], 0, count - FIXED, &commands))
        return -EINVAL;
    *job = (struct launch_job){
        .rank = (unsigned)rank,
        .nodes = (unsigned)nodes,
        .grace = (unsigned)grace,
        .host = words[3],
        .directory = words[4],
        .options = words[5],
        .source = words[6],
        .mountpoint = words[7],
        .command = calloc(commands + 1, sizeof *words),
        .environment = calloc(count - FIXED - commands + 1, sizeof *words),
    };
    if (!job->command || !job->environment)
        return -ENOMEM;
    memcpy(job->command, words + FIXED, commands * sizeof *words);
    memcpy(job->environment, words + FIXED + commands, (count - FIXED - commands) * sizeof *words);
    return commands ? 0 : -EINVAL;
}

int launch_job_read(struct launch_job *job, const struct str *text)
{
    size_t count = 0;
    *job = (struct launch_job){0};
    if (!text->length || text->data[text->length - 1] != '\0')
        return -EINVAL;
    char **words = calloc(text->length, sizeof *words);
    if (!words)
        return -ENOMEM;
    for (char *word = text->data; word < text->data + text->length; word += strlen(word) + 1)
        words[count++] = word;
    int error = take_words(job, words, count);
    free(words);
    return error;
}

void launch_job_fini(struct launch_job *job)
{
    free(job->command);
    free(job->environment);
    *job = (struct launch_job){0};
}
