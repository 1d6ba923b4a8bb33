/* main() of every test that defines  Suite *test_suite(void)  and no main of its own. */
#include "tests/support/patience.h"
#include <check.h>
#include <stdlib.h>

Suite *test_suite(void);

int main(void)
{
    /* Check's 4 seconds are too few on a busy machine. */
    setenv("CK_DEFAULT_TIMEOUT", "300", 0);
    setenv("CK_TIMEOUT_MULTIPLIER", PATIENCE_TEXT, 0);
    SRunner *runner = srunner_create(test_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
