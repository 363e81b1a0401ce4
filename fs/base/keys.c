/* Keys and values from users: each rejection says what is wrong and what would be right. */
#include "fs/base/keys.h"

#include <errno.h>
#include <string.h>

/* How many letters differ between two short words: Levenshtein's distance, over one row. */
static unsigned word_distance(const char *a, size_t a_length, const char *b)
{
    enum { MOST = 32 };
    size_t b_length = strlen(b);
    unsigned row[MOST + 1];
    if (a_length > MOST || b_length > MOST)
        return MOST;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[b_length];
}

void nearest_try(struct nearest *best, const char *given, size_t length, const char *known)
{
    unsigned distance = word_distance(given, length, known);
    if (!best->word || distance < best->distance)
        *best = (struct nearest){known, distance};
}

const char *nearest_meant(const struct nearest *best, size_t length)
{
    return best->word && best->distance <= 1 + length / 3 && best->distance < length ? best->word : NULL;
}

void str_add_backquoted(struct str *text, const char *word, size_t n)
{
    enum { SHOWN = 64 };
    str_adds(text, "`");
    str_add_printable(text, word, n < SHOWN ? n : SHOWN);
    str_adds(text, n > SHOWN ? "…`" : "`");
}

static int refuse_key(const struct key *keys, const char *what, const char *name, size_t n, struct str *why)
{
    struct nearest best = {0};
    str_adds(why, "unknown key ");
    str_add_backquoted(why, name, n);
    str_addf(why, " for `%s`", what);
    for (const struct key *key = keys; key->name; key++)
        nearest_try(&best, name, n, key->name);
    if (!best.word)
        return str_fail(why, -EINVAL, ", which takes no keys");
    str_addf(why, ". Did you mean `%s`? Known keys: ", best.word);
    for (const struct key *key = keys; key->name; key++)
        str_addf(why, "%s%s", key == keys ? "" : ", ", key->name);
    return -EINVAL;
}

/* Position of the value in "a|b|c"; -1: none. */
static int find_choice(const char *choices, const char *value, size_t n)
{
    for (int i = 0; *choices; i++) {
        size_t length = strcspn(choices, "|");
        if (length == n && memcmp(choices, value, n) == 0)
            return i;
        choices += length + (choices[length] == '|');
    }
    return -1;
}

static int take_value(const struct key *key, char *text, size_t n, struct key_value *value, struct str *why)
{
    if (value->text)
        return str_fail(why, -EINVAL, "key `%s` is given twice", key->name);
    long length = percent_decode(text, n);
    if (length < 0 || memchr(text, '\0', (size_t)length))
        return str_fail(why, -EINVAL,
                        "the value of `%s` has a bad escape: `%%` must be followed by two hexadecimal digits, not 00",
                        key->name);
    text[length] = '\0';
    int choice = key->choices ? find_choice(key->choices, text, (size_t)length) : 0;
    if (choice < 0) {
        str_addf(why, "`%s=", key->name);
        str_add_printable(why, text, (size_t)length);
        return str_fail(why, -EINVAL, "` is not one of %s", key->choices);
    }
    *value = (struct key_value){text, (size_t)length, (unsigned)choice};
    return 0;
}

/* Parse one `key=value`; text[n] may be overwritten. */
static int take_pair(const struct key_words *words, char *text, size_t n, struct key_value *values, struct str *why)
{
    const struct key *keys = words->keys;
    char *equals = memchr(text, '=', n);
    if (!equals || equals == text) {
        str_add_backquoted(why, text, n);
        return str_fail(why, -EINVAL, " is not of the form key=value");
    }
    size_t length = (size_t)(equals - text);
    for (size_t i = 0; keys[i].name; i++)
        if (strlen(keys[i].name) == length && memcmp(keys[i].name, text, length) == 0)
            return take_value(&keys[i], equals + 1, n - length - 1, &values[i], why);
    return refuse_key(keys, words->what, text, length, why);
}

static int check_required(const struct key *keys, const char *what, const struct key_value *values, struct str *why)
{
    for (size_t i = 0; keys[i].name; i++) {
        if (!keys[i].required || values[i].text)
            continue;
        str_addf(why, "`%s` needs `%s=…`; usage: %s", what, keys[i].name, what);
        for (size_t k = 0; keys[k].name; k++)
            if (keys[k].required)
                str_addf(why, " %s=%s", keys[k].name, keys[k].choices ? keys[k].choices : keys[k].value);
        return -EINVAL;
    }
    return 0;
}

static bool separates(char c, char separator)
{
    return c == separator || (separator == ' ' && c == '\t');
}

int keys_parse(const struct key_words *words, char *text, size_t n, struct key_value *values, struct str *why)
{
    for (size_t at = 0; at < n;) {
        size_t end = at;
        while (end < n && !separates(text[end], words->separator))
            end++;
        int error = end > at ? take_pair(words, text + at, end - at, values, why) : 0;
        if (error)
            return error;
        at = end + 1;
    }
    return check_required(words->keys, words->what, values, why);
}

void keys_add_usage(const struct key *keys, size_t indent, size_t width, struct str *text)
{
    size_t column = indent;
    for (const struct key *key = keys; key->name; key++) {
        const char *value = key->choices ? key->choices : key->value;
        size_t n = strlen(key->name) + 1 + strlen(value) + (key->required ? 0 : 2);
        if (column > indent && column + 1 + n > width) {
            str_addf(text, "\n%*s", (int)indent, "");
            column = indent;
        }
        str_addf(text, key->required ? "%s%s=%s" : "%s[%s=%s]", column > indent ? " " : "", key->name, value);
        column += n + (column > indent);
    }
}

void keys_add_help(const struct key *keys, struct str *text)
{
    for (const struct key *key = keys; key->name; key++)
        str_addf(text, "  %s=%s\t%s\n", key->name, key->choices ? key->choices : key->value, key->help);
}
