stack='Go, with dependencies'
repository=spf13/cast
commit=715c728a3579ae1de12628b259f1198f214e9ccb
package='go github.com/spf13/cast v1.9.2'
install() { go mod download; }
check() { go test ./...; }
honest() { printf '\n// more\n' >>alias.go; }
broken() { sed -i 's/return resolve(v), true/return resolve(v), false/' alias.go; }
dependency() {
    go get github.com/google/uuid@v1.6.0
    printf 'package cast\n\nimport "github.com/google/uuid"\n\nfunc isUUID(text string) bool { return uuid.Validate(text) == nil }\n' >uuid.go
    printf 'package cast\n\nimport "testing"\n\nfunc TestIsUUID(t *testing.T) {\n\tif isUUID("no") {\n\t\tt.Fatal()\n\t}\n}\n' >uuid_test.go
}
