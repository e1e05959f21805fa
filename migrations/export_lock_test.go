package migrations

// The advisory lock of a runner, for tests that hold it.
const (
	LockClass = lockClass
	LockKey   = lockKey
)
