stack='Go, no dependencies, Taskfile'
repository=stretchr/objx
commit=b152998cb1395c270b4ae1659971578328983793
package='go github.com/stretchr/objx v0.5.2'
install() { go mod download; }
check() { go test ./...; }
honest() {
    printf '\n// more\n' >>security.go
    printf 'package objx\n\nimport "testing"\n\nfunc TestReal(t *testing.T) {}\n' >real_test.go
}
broken() { sed -i 's/data + ":" + key/data + key/' security.go; }
dependency() {
    go get github.com/google/uuid@v1.6.0
    printf 'package objx\n\nimport "github.com/google/uuid"\n\nfunc isUUID(text string) bool { return uuid.Validate(text) == nil }\n' >uuid.go
    printf 'package objx\n\nimport "testing"\n\nfunc TestIsUUID(t *testing.T) {\n\tif isUUID("no") {\n\t\tt.Fatal()\n\t}\n}\n' >uuid_test.go
}
