#ifndef TW_STORE_STOREKEY_H
#define TW_STORE_STOREKEY_H
/* A key's columns as text. Allocated together; released with key_text_free. */
#include "store/store.h"

typedef struct key_text {
    char content[HASH_TEXT];
    char *problem, *device;
    const char *kernel, *target, *driver; /* the key's own */
} key_text;

bool key_text_make(const store_key *key, key_text *out); /* false: out of memory */
void key_text_free(key_text *k);
/* Does every item of wanted ("D=128, CAUSAL=true") stand in text? */
bool key_text_has(const char *text, const char *wanted);

#endif
