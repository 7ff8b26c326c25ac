/*
 * Training by several ranks: the buckets of gradients, and with ZeRO-1 the parts of the optimiser's
 * states. Without peers a rank has all states and nothing is exchanged.
 */
#include <stdlib.h>

#include "common/base/checked.h"
#include "common/train/models/train_model_internal.h"

/* ---- Parts and buckets ---- */

static void set_parts(struct train_model *m) {
    const struct train_peers *p = m->config.peers;
    m->count = m->elements;
    if (p == NULL || !p->zero || p->ranks == 1) {
        return;
    }
    size_t of_each = ceil_div(m->elements, (size_t)p->ranks);
    m->part = ceil_div(of_each, TRAIN_ALIGNMENT) * TRAIN_ALIGNMENT;
    m->first = m->part * (size_t)p->rank;
    m->first = m->first < m->elements ? m->first : m->elements;
    size_t left = m->elements - m->first;
    m->count = left < m->part ? left : m->part;
}

static void add_bucket(struct train_model *m, size_t first, size_t end, size_t stands) {
    if (end > first) {
        m->buckets[m->bucket_count++] =
            (struct train_bucket){.first = first, .count = end - first, .stands = stands};
    }
}

/*
 * The backward pass ends with the embeddings, the first matrices. Buckets follow it: layers from
 * the last on, as many together as reach the wanted size, the head's matrices with the first of
 * them; then the embeddings; then norms and biases, which are small.
 */
static void fill_buckets(struct train_model *m) {
    const struct train_peers *p = m->config.peers;
    size_t most = p->bucket_bytes / train_type_bytes(m->engine->weights);
    size_t end = m->decayed;
    for (size_t l = m->architecture->layers(&m->config); l-- > 0;) {
        size_t first = m->architecture->first_of(m, l);
        if (end - first >= most || l == 0) {
            add_bucket(m, first, end, first);
            end = first;
        }
    }
    add_bucket(m, 0, end, 0);
    add_bucket(m, m->decayed, m->elements, 0);
}

enum status train_exchange_create(struct train_model *m, struct error *error) {
    const struct train_peers *p = m->config.peers;
    set_parts(m);
    if (p == NULL) {
        return STATUS_OK;
    }
    if (m->engine->weights != TRAIN_F32) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "engine %s has other weights than fp32: it trains on one rank alone",
                         m->engine->name);
    }
    m->buckets = calloc(m->architecture->layers(&m->config) + 2, sizeof *m->buckets);
    if (m->buckets == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the buckets");
    }
    fill_buckets(m);
    return STATUS_OK;
}

/* ---- Memory ---- */

enum status train_exchange_alloc(struct train_model *m, struct error *error) {
    const struct train_engine *e = m->engine;
    const struct train_peers *p = m->config.peers;
    size_t element = train_type_bytes(e->weights), bytes = m->elements * element;
    if (p == NULL) {
        void **const arrays[] = {&m->weights, &m->gradient, &m->m, &m->v};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
            TRY(e->alloc(e->context, bytes, arrays[i], error));
        }
        return STATUS_OK;
    }
    TRY(p->alloc(p->context, bytes, &m->gradient, error));
    TRY(p->alloc(p->context, bytes, &m->weights, error));
    size_t moments = m->part > 0 ? m->part * element : bytes;
    TRY(p->alloc(p->context, moments, &m->m, error));
    return p->alloc(p->context, moments, &m->v, error);
}

void train_exchange_free(struct train_model *m) {
    const struct train_engine *e = m->engine;
    const struct train_peers *p = m->config.peers;
    void *const arrays[] = {m->weights, m->gradient, m->m, m->v};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (p != NULL) {
            p->release(p->context, arrays[i]);
        } else {
            e->release(e->context, arrays[i]);
        }
    }
    free(m->buckets);
}

void *train_moment_at(const struct train_model *m, const void *moments, size_t element) {
    const struct train_peers *p = m->config.peers;
    void *array = p->at(p->context, moments, (int)(element / m->part));
    return array != NULL ? train_at(array, element % m->part, m->engine->weights) : NULL;
}

/* ---- A step ---- */

void train_model_last_pass(struct train_model *m) {
    m->last_pass = m->config.peers != NULL;
}

static enum status reduce_next(struct train_model *m) {
    const struct train_peers *p = m->config.peers;
    const struct train_bucket *bucket = &m->buckets[m->next_bucket++];
    return p->reduce(p->context, m->gradient, bucket->first, bucket->count);
}

enum status train_gradients_stand(struct train_model *m, size_t first) {
    while (m->last_pass && m->next_bucket < m->bucket_count &&
           m->buckets[m->next_bucket].stands >= first && first > 0) {
        TRY(reduce_next(m));
    }
    return STATUS_OK;
}

enum status train_exchange_finish(struct train_model *m) {
    const struct train_peers *p = m->config.peers;
    while (m->next_bucket < m->bucket_count) {
        TRY(reduce_next(m));
    }
    m->next_bucket = 0;
    m->last_pass = false;
    return p != NULL ? p->join(p->context) : STATUS_OK;
}

enum status train_exchange_weights(struct train_model *m) {
    const struct train_engine *e = m->engine;
    const struct train_peers *p = m->config.peers;
    if (m->part == 0) {
        return STATUS_OK;
    }
    size_t firsts[TRAIN_MOST_RANKS + 1];
    for (int r = 0; r <= p->ranks; r++) {
        size_t first = m->part * (size_t)r;
        firsts[r] = first < m->elements ? first : m->elements;
    }
    TRY(p->gather(p->context, m->weights, firsts));
    return m->copy != NULL ? e->convert(e->context, m->copy, m->weights, m->elements) : STATUS_OK;
}
