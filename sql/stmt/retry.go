package stmt

import _ "embed" // the statements are files

// The statements about dead letters that are decoded again.
var (
	//go:embed retry_is.sql
	RetryIs string
	//go:embed retry_letters.sql
	RetryLetters string
	//go:embed retry_lock.sql
	RetryLock string
	//go:embed retry_done.sql
	RetryDone string
)

func retries() map[string]string {
	return map[string]string{"retry_is": RetryIs, "retry_letters": RetryLetters, "retry_lock": RetryLock, "retry_done": RetryDone}
}
