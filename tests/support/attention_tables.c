#include "tests/support/attention_tables.h"
#include <stdio.h>

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))

static const int64_t lengths[] = {1, 2, 17, 63, 64, 65, 127, 129, 197};

typedef struct table {
    num_subject *s;
    int thin, at;
} table;

/* Every case flush with one end of its memory, then with the other, or with one of them in turn. */
static void run(table *t, attention_case c)
{
    int turn = t->s->turn, number = t->at / t->thin;

    if (t->at++ % t->thin)
        return;
    if (turn == 0 || (turn + number) % 2 == 1)
        attention_check(t->s, &c, NUM_AT_END);
    if (turn == 0 || (turn + number) % 2 == 0)
        attention_check(t->s, &c, NUM_AT_START);
}

static attention_case plain(int64_t m, int64_t n, int64_t d)
{
    return attention_sizes(1, 1, 1, m, n, d, d);
}

void attention_shapes(num_subject *s, int thin)
{
    static const int64_t dims[] = {16, 24, 40, 72, 80, 96};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < 2 * COUNT(lengths) * COUNT(lengths); i++) {
        int64_t pair = i / 2;
        attention_case c =
            plain(lengths[pair % COUNT(lengths)], lengths[pair / COUNT(lengths)], 64);

        c.causal = i % 2;
        run(&t, c);
    }
    for (int64_t i = 0; i < COUNT(dims) * COUNT(lengths); i++) {
        int64_t j = i % COUNT(lengths);
        attention_case c = plain(lengths[j], lengths[(j * 4 + i) % COUNT(lengths)],
                                 dims[i / COUNT(lengths)]);

        c.causal = i % 2;
        run(&t, c);
    }
}

void attention_wide_heads(num_subject *s, int thin)
{
    static const int64_t dims[][2] = {{128, 128}, {192, 192}, {256, 256}, {64, 128}, {128, 64},
                                      {192, 128}, {16, 256},  {40, 24},   {8, 8}};
    static const int64_t shape[][2] = {{1, 65}, {63, 129}, {129, 64}, {65, 1}};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(dims) * COUNT(shape); i++) {
        attention_case c = plain(shape[i % COUNT(shape)][0], shape[i % COUNT(shape)][1],
                                 dims[i / COUNT(shape)][0]);

        c.DV = dims[i / COUNT(shape)][1];
        c.causal = i % 2;
        run(&t, c);
    }
}

void attention_odd_heads(num_subject *s, int thin)
{
    static const int64_t dims[][2] = {{8, 8},     {24, 24},  {40, 40}, {72, 72},  {88, 88},
                                      {100, 100}, {33, 33},  {9, 17},  {40, 64},  {64, 40},
                                      {100, 24},  {120, 56}, {13, 5},  {152, 152}};
    static const int64_t shape[][2] = {{65, 129}, {64, 64}, {1, 200}, {130, 33}};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(dims) * COUNT(shape); i++) {
        attention_case c = plain(shape[i % COUNT(shape)][0], shape[i % COUNT(shape)][1],
                                 dims[i / COUNT(shape)][0]);

        c.DV = dims[i / COUNT(shape)][1];
        c.causal = i % 2;
        run(&t, c);
    }
}

void attention_offsets(num_subject *s, int thin)
{
    static const int64_t shape[][2] = {{5, 5},   {64, 64}, {65, 130}, {130, 65},
                                       {1, 197}, {197, 1}, {100, 37}};
    static const int64_t offset[] = {0, -1, 1, -64, 63, 64, -65, -200, 200, 1 << 30, -(1 << 30)};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(shape); i++) {
        attention_case c = plain(shape[i][0], shape[i][1], 32);

        c.causal = true;
        run(&t, c);
        c.has_offset = true;
        for (int64_t j = 0; j < COUNT(offset); j++) {
            c.offset = offset[j];
            run(&t, c);
        }
    }
}

void attention_groups(num_subject *s, int thin)
{
    static const int64_t heads[][2] = {{4, 4}, {4, 2}, {9, 3}, {8, 1}, {1, 1}};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(heads) * 2; i++) {
        attention_case c = plain(33, 70, 32);

        c.B = 1 + i % 3;
        c.H = heads[i / 2][0];
        c.HK = heads[i / 2][1];
        c.causal = i % 2;
        run(&t, c);
    }
}

void attention_layouts(num_subject *s, int thin)
{
    table t = {s, thin, 0};
    attention_case base = plain(37, 70, 32);

    base.B = base.H = base.HK = 2;
    for (int which = 0; which < 4; which++)
        for (int layout = 1; layout < NUM_LAYOUTS; layout++) {
            attention_case c = base;
            enum num_layout *of[4] = {&c.q, &c.k, &c.v, &c.o};

            if (which == 3 && layout == NUM_BROADCAST)
                continue; /* two elements of an output may not share memory */
            *of[which] = (enum num_layout)layout;
            c.causal = layout % 2;
            run(&t, c);
        }
    for (int i = 0; i < 24; i++) {
        attention_case c = base;

        c.q = (enum num_layout)num_below(&s->random, NUM_LAYOUTS);
        c.k = (enum num_layout)num_below(&s->random, NUM_LAYOUTS);
        c.v = (enum num_layout)num_below(&s->random, NUM_LAYOUTS);
        c.o = (enum num_layout)num_below(&s->random, NUM_BROADCAST);
        run(&t, c);
    }
}

void attention_blocks(num_subject *s, int thin)
{
    static const int64_t block[][2] = {{32, 32}, {128, 128}, {192, 64}, {96, 48}, {48, 96},
                                       {80, 24}, {24, 80},   {16, 16},  {8, 40},  {64, 256},
                                       {1, 8},   {7, 13}};
    static const int64_t shape[][2] = {{97, 193}, {64, 64}, {5, 300}};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(block) * COUNT(shape); i++) {
        attention_case c = plain(shape[i % COUNT(shape)][0], shape[i % COUNT(shape)][1], 40);
        char config[64];

        snprintf(config, sizeof config, "BLOCK_M=%lld,BLOCK_N=%lld",
                 (long long)block[i / COUNT(shape)][0], (long long)block[i / COUNT(shape)][1]);
        c.config = config;
        c.causal = i % 2;
        run(&t, c);
    }
}

void attention_schedules(num_subject *s, int thin)
{
    static const char *const config[] = {"threads=1",         "threads=2",
                                         "threads=7,order=1", "threads=1,order=1,BLOCK_M=32",
                                         "order=1",           "threads=64,BLOCK_N=32"};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(config); i++) {
        attention_case c = attention_sizes(2, 3, 3, 200, 130, 24, 24);

        c.config = config[i];
        c.causal = i % 2;
        run(&t, c);
    }
}

void attention_empty(num_subject *s, int thin)
{
    static const int64_t size[][5] = {{0, 2, 2, 5, 7}, {2, 0, 1, 5, 7}, {2, 2, 1, 0, 7},
                                      {2, 2, 1, 5, 0}, {0, 0, 1, 0, 0}};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(size) * 2; i++) {
        const int64_t *n = size[i / 2];
        attention_case c = plain(n[3], n[4], 16);

        c.B = n[0];
        c.H = n[1];
        c.HK = n[2];
        c.causal = i % 2;
        run(&t, c);
    }
}

void attention_magnitudes(num_subject *s, int thin)
{
    static const double sigma[] = {1e-20, 1e-3, 5.0, 30.0, 300.0};
    table t = {s, thin, 0};

    for (int64_t i = 0; i < COUNT(sigma) * 2; i++) {
        attention_case c = plain(40, 150, 64);

        c.sigma = sigma[i / 2];
        c.scale = i % 2 ? 0.0 : 0.25;
        c.causal = i % 2;
        run(&t, c);
    }
}
