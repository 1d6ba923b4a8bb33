#include "tests/support/kernel_tables.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const enum num_layout dense[3] = {NUM_DENSE, NUM_DENSE, NUM_DENSE};
static const enum num_place places[] = {NUM_AT_END, NUM_AT_START};

/* Case number i of a kernel with n tensors, the last an output: a layout for each. */
static void mix_layouts(num_subject *s, int n, enum num_layout *layout)
{
    for (int i = 0; i < n; i++)
        layout[i] = (enum num_layout)num_below(&s->random, i < n - 1 ? NUM_LAYOUTS : NUM_BROADCAST);
}

void matmul_table(num_subject *s, int thin)
{
    static const int64_t length[] = {1, 2, 17, 63, 64, 65, 127, 129, 197};
    static const char *const config[] = {
        "BLOCK_M=128,BLOCK_N=128,BLOCK_K=32", "BLOCK_M=96,BLOCK_N=48,BLOCK_K=24",
        "BLOCK_M=80,BLOCK_N=24,BLOCK_K=64",   "BLOCK_M=16,BLOCK_N=16,BLOCK_K=16",
        "BLOCK_M=7,BLOCK_N=5,BLOCK_K=3",      "BLOCK_M=1,BLOCK_N=64,BLOCK_K=1",
    };
    static const int64_t empty[][3] = {{0, 5, 5}, {5, 0, 5}, {5, 5, 0}, {0, 0, 0}};
    int at = 0;

    for (int i = 0; i < COUNT(length) * COUNT(length); i++) {
        int64_t m = length[i % COUNT(length)], n = length[i / COUNT(length)];

        if (at++ % thin == 0)
            matmul_check(s, m, n, length[(i * 5 + 2) % COUNT(length)], dense, NULL, places[i % 2]);
    }
    for (int i = 0; i < COUNT(config); i++) {
        if (at++ % thin == 0)
            matmul_check(s, 131, 67, 97, dense, config[i], places[i % 2]);
    }
    for (int i = 0; i < COUNT(empty); i++)
        matmul_check(s, empty[i][0], empty[i][1], empty[i][2], dense, NULL, places[i % 2]);
    for (int i = 0; i < 30; i++) {
        enum num_layout layout[3];

        mix_layouts(s, 3, layout);
        if (at++ % thin == 0)
            matmul_check(s, 70, 37, 65, layout, NULL, places[i % 2]);
    }
}

void softmax_table(num_subject *s, int thin)
{
    static const int64_t rows[] = {1, 3, 16, 17, 33};
    static const int64_t columns[] = {1, 2, 17, 127, 128, 129, 1000, 4099};
    static const double sigma[] = {1.0, 1e-6, 20.0, 1000.0};
    static const char *const config[] = {"BLOCK_M=1,BLOCK_N=64", "BLOCK_M=4,BLOCK_N=4096",
                                         "BLOCK_M=24,BLOCK_N=48", "BLOCK_M=5,BLOCK_N=7"};
    int at = 0;

    for (int i = 0; i < COUNT(rows) * COUNT(columns); i++) {
        if (at++ % thin == 0)
            softmax_check(s, rows[i % COUNT(rows)], columns[i / COUNT(rows)],
                          sigma[i % COUNT(sigma)], dense, NULL, places[i % 2]);
    }
    for (int i = 0; i < COUNT(config); i++) {
        if (at++ % thin == 0)
            softmax_check(s, 13, 300, 2.0, dense, config[i], places[i % 2]);
    }
    softmax_check(s, 0, 5, 1.0, dense, NULL, NUM_AT_END);
    softmax_check(s, 5, 0, 1.0, dense, NULL, NUM_AT_END);
    for (int i = 0; i < 16; i++) {
        enum num_layout layout[2];

        mix_layouts(s, 2, layout);
        if (at++ % thin == 0)
            softmax_check(s, 19, 131, 3.0, layout, NULL, places[i % 2]);
    }
}

void vector_add_table(num_subject *s, int thin)
{
    static const int64_t length[] = {0, 1, 2, 3, 15, 16, 17, 1023, 1024, 1025, 5000};
    static const char *const config[] = {NULL, "BLOCK=256", "BLOCK=7", "BLOCK=1", "BLOCK=96"};
    int at = 0;

    for (int i = 0; i < COUNT(length) * COUNT(config); i++) {
        enum num_layout layout[3];

        mix_layouts(s, 3, layout);
        if (at++ % thin == 0)
            vector_add_check(s, length[i % COUNT(length)], i % 3 ? layout : dense,
                             config[i / COUNT(length)], places[i % 2]);
    }
}
