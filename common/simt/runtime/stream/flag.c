#include "common/simt/runtime/stream/flag.h"

#include <stdlib.h>

enum { WORD = 4, LEAST_BUCKETS = 64, LEAST_PRUNED = 4096 };

/* Stores of a kernel between two fences tell the same, so their words share it. */
struct shared_news {
    struct flag_news news;
    size_t users;
};

struct flag {
    uint64_t word;
    struct shared_news *told;
    struct flag *next; /* of its bucket */
};

struct flag_table {
    struct flag **buckets;
    size_t bucket_count, count; /* buckets: a power of two */
    size_t pruned_at;           /* words at which it is worth while to look for old ones */
    struct shared_news *newest; /* or NULL; a user of it */
};

static void let_go(struct shared_news *told) {
    if (told != NULL && --told->users == 0) {
        order_clock_free(&told->news.clock);
        order_clock_free(&told->news.reads);
        free(told);
    }
}

static bool is_equal(const struct flag_news *a, const struct flag_news *b) {
    return !order_has_news(&a->clock, &b->clock) && !order_has_news(&b->clock, &a->clock) &&
           !order_has_news(&a->reads, &b->reads) && !order_has_news(&b->reads, &a->reads);
}

static void add(struct flag_news *to, const struct flag_news *from) {
    order_learn(&to->clock, &from->clock);
    order_learn(&to->reads, &from->reads);
}

/* @return the same news, with another user; NULL without memory */
static struct shared_news *share(struct flag_table *table, const struct flag_news *news,
                                 const struct flag_news *also) {
    struct shared_news *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    add(&made->news, news);
    if (also != NULL) {
        add(&made->news, also);
    }
    made->users = 1;
    if (table->newest != NULL && is_equal(&table->newest->news, &made->news)) {
        let_go(made);
        table->newest->users++;
        return table->newest;
    }
    let_go(table->newest);
    table->newest = made;
    made->users++;
    return made;
}

static struct flag **place_of(const struct flag_table *table, uint64_t word) {
    /* Neighbours lie in neighbouring buckets, those of other ranks at the same offset elsewhere. */
    size_t bucket = (size_t)(word ^ word >> 15 ^ word >> 29) & (table->bucket_count - 1);
    struct flag **link = &table->buckets[bucket];
    while (*link != NULL && (*link)->word != word) {
        link = &(*link)->next;
    }
    return link;
}

static bool grow(struct flag_table *table) {
    size_t wanted = table->bucket_count == 0 ? LEAST_BUCKETS : 2 * table->bucket_count;
    struct flag_table old = *table;
    struct flag **buckets = calloc(wanted, sizeof(struct flag *));
    if (buckets == NULL) {
        return old.bucket_count > 0; /* it goes on, if slowly */
    }
    table->buckets = buckets;
    table->bucket_count = wanted;
    for (size_t n = 0; n < old.bucket_count; n++) {
        for (struct flag *f = old.buckets[n], *next; f != NULL; f = next) {
            next = f->next;
            f->next = NULL;
            *place_of(table, f->word) = f;
        }
    }
    free(old.buckets);
    return true;
}

static struct flag *find_or_make(struct flag_table *table, uint64_t word) {
    if (table->count >= table->bucket_count && !grow(table)) {
        return NULL;
    }
    struct flag **link = place_of(table, word);
    if (*link == NULL && (*link = calloc(1, sizeof **link)) != NULL) {
        (*link)->word = word;
        table->count++;
    }
    return *link;
}

void flag_store(struct flag_table **table, uint64_t address, uint32_t bytes,
                const struct flag_news *news, bool adds) {
    if (*table == NULL && (*table = calloc(1, sizeof **table)) == NULL) {
        return;
    }
    (*table)->pruned_at = (*table)->pruned_at == 0 ? LEAST_PRUNED : (*table)->pruned_at;
    for (uint64_t word = address / WORD; bytes > 0 && word <= (address + bytes - 1) / WORD;
         word++) {
        struct flag *flag = find_or_make(*table, word);
        if (flag != NULL) {
            bool keeps = (adds || bytes < WORD) && flag->told != NULL;
            struct shared_news *told = share(*table, news, keeps ? &flag->told->news : NULL);
            let_go(flag->told);
            flag->told = told;
        }
    }
}

static bool is_old(const struct shared_news *told, const struct order_clock *clock,
                   const struct order_clock *reads) {
    return told == NULL ||
           (!order_has_news(clock, &told->news.clock) && !order_has_news(reads, &told->news.reads));
}

bool flag_has_news(const struct flag_table *table, uint64_t address, uint32_t bytes,
                   const struct order_clock *clock, const struct order_clock *reads) {
    const struct shared_news *told = NULL; /* of the word before: often the same */
    if (table == NULL || table->bucket_count == 0 || bytes == 0) {
        return false;
    }
    for (uint64_t word = address / WORD; word <= (address + bytes - 1) / WORD; word++) {
        const struct flag *flag = *place_of(table, word);
        if (flag != NULL && flag->told != told) {
            told = flag->told;
            if (!is_old(told, clock, reads)) {
                return true;
            }
        }
    }
    return false;
}

void flag_look(const struct flag_table *table, uint64_t address, uint32_t bytes,
               struct flag_news *news) {
    if (table == NULL || table->bucket_count == 0 || bytes == 0) {
        return;
    }
    for (uint64_t word = address / WORD; word <= (address + bytes - 1) / WORD; word++) {
        const struct flag *flag = *place_of(table, word);
        if (flag != NULL && flag->told != NULL) {
            add(news, &flag->told->news);
        }
    }
}

static void drop(struct flag_table *table, struct flag **link) {
    struct flag *flag = *link;
    *link = flag->next;
    let_go(flag->told);
    free(flag);
    table->count--;
}

/* @param known NULL: drops all */
static void drop_old(struct flag_table *table, const struct order_clock *known) {
    for (size_t n = 0; n < table->bucket_count; n++) {
        for (struct flag **link = &table->buckets[n]; *link != NULL;) {
            if (known == NULL || is_old((*link)->told, known, known)) {
                drop(table, link);
            } else {
                link = &(*link)->next;
            }
        }
    }
}

void flag_prune(struct flag_table *table, const struct order_clock *known) {
    if (table != NULL && table->count > table->pruned_at) {
        drop_old(table, known);
        table->pruned_at = table->count < LEAST_PRUNED / 2 ? LEAST_PRUNED : 2 * table->count;
    }
}

void flag_table_free(struct flag_table *table) {
    if (table != NULL) {
        drop_old(table, NULL);
        let_go(table->newest);
        free(table->buckets);
        free(table);
    }
}
