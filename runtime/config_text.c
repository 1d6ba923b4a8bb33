#include "compiler/base/check.h"
#include "compiler/base/namelist.h"
#include "runtime/args.h"
#include "runtime/resolve.h"
#include <stdio.h>
#include <string.h>

tw_status config_text(const config *cfg, char out[RUNTIME_CONFIG_TEXT])
{
    size_t n = 0;

    out[0] = 0;
    for (uint32_t i = 0; i < cfg->n; i++) {
        int k = snprintf(out + n, RUNTIME_CONFIG_TEXT - n, "%s%s=%lld", i ? "," : "",
                         cfg->value[i].name, (long long)cfg->value[i].value);
        if (k < 0 || (size_t)k >= RUNTIME_CONFIG_TEXT - n)
            return error_set(TW_E_LIMIT,
                             "the text of a configuration is above the limit of %d bytes",
                             RUNTIME_CONFIG_TEXT - 1);
        n += (size_t)k;
    }
    return TW_OK;
}

bool config_equal(const config *a, const config *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->value[i].value != b->value[i].value || strcmp(a->value[i].name, b->value[i].name))
            return false;
    return true;
}

/* ---- reading "NAME=VALUE,NAME=VALUE" --------------------------------------------------------- */

static void copy_trimmed(char *out, size_t size, const char *s, size_t n)
{
    while (n > 0 && s[n - 1] == ' ')
        n--;
    while (n > 0 && s[0] == ' ')
        s++, n--;
    snprintf(out, size, "%.*s", (int)n, s);
}

static size_t pair_length(const char *s)
{
    size_t n = 0;

    for (int depth = 0; s[n] && (s[n] != ',' || depth > 0); n++)
        depth += strchr("([{", s[n]) ? 1 : strchr(")]}", s[n]) ? -1 : 0;
    return n;
}

bool pair_next(const char **at, text_pair *out)
{
    const char *s = *at + strspn(*at, " ,");
    size_t n = pair_length(s);
    const char *eq = memchr(s, '=', n);
    size_t name = eq ? (size_t)(eq - s) : n;

    if (!*s)
        return false;
    copy_trimmed(out->name, sizeof out->name, s, name);
    copy_trimmed(out->value, sizeof out->value, eq ? eq + 1 : "", eq ? n - name - 1 : 0);
    out->has_value = eq != NULL;
    *at = s + n;
    return true;
}

static tw_status unknown_parameter(const tw_kernel *k, const target *t, const config *cfg,
                                   const char *name)
{
    const kernel_sig *sig = &k->source->sig;
    char hint[200];
    namelist l = namelist_begin(hint, sizeof hint, "it has ", ", ");

    for (uint32_t i = 0; i < sig->nconsts; i++)
        if (strcmp(sig->cons[i].name, name) == 0)
            return ARG_ERROR("pass it as an argument",
                             "'%s' is a compile-time value of kernel '%s', not part of its "
                             "configuration",
                             name, sig->name);
    for (uint32_t i = 0; i < cfg->n; i++)
        namelist_add(&l, "%s", cfg->value[i].name);
    if (!cfg->n)
        namelist_add(&l, "none");
    namelist_end(&l);
    return ARG_ERROR(hint, "kernel '%s' on target '%s' has no parameter '%s'", sig->name, t->name,
                     name);
}

static tw_status check_schedule(const target *t, const char *name, int64_t v)
{
    const sched_param *s = target_sched(t, name);

    if (s && (v < s->lo || v > s->hi))
        return ARG_ERROR(NULL, "schedule parameter '%s' must be %lld to %lld, not %lld", name,
                         (long long)s->lo, (long long)s->hi, (long long)v);
    return TW_OK;
}

tw_status config_set(const tw_kernel *k, const target *t, const text_pair *pair, config *cfg,
                     uint64_t *pinned)
{
    int64_t v;

    for (uint32_t i = 0; i < cfg->n; i++) {
        ir_binding *b = &cfg->value[i];
        if (strcmp(b->name, pair->name) != 0)
            continue;
        if (!pair->has_value || !text_int(pair->value, &v))
            return ARG_ERROR("write NAME=NUMBER, separated by commas",
                             "configuration: '%s' is not a number for '%s'", pair->value, b->name);
        if (*pinned >> i & 1)
            return ARG_ERROR(NULL, "configuration: '%s' is given twice", b->name);
        if (i < k->source->sig.ntunes && v < 1)
            return ARG_ERROR(NULL, "tune parameter '%s' must be at least 1, not %lld", b->name,
                             (long long)v);
        if (i >= k->source->sig.ntunes)
            TRY(check_schedule(t, b->name, v));
        b->value = v;
        *pinned |= (uint64_t)1 << i;
        return TW_OK;
    }
    return unknown_parameter(k, t, cfg, pair->name);
}
